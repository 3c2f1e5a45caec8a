"""The affine frame of a particle set: the coordinates in which the set has mean zero and covariance one."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.typing import Matrix, PerParticle, Point, Points


class Whitening(eqx.Module):
    """x = mean + scale w, `scale` lower triangular. Densities: log q_x(x) = log q_w(w) − log det scale."""

    mean: Point
    scale: Matrix
    inverse_scale: Matrix  # its inverse: one product per set is cheaper than a triangular solve for every point

    def whiten(self, points: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return (points - self.mean) @ self.inverse_scale.T

    def restore(self, whitened: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return self.mean + whitened @ self.scale.T

    def vectors(self, whitened_vectors: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Velocities: scale v."""
        return whitened_vectors @ self.scale.T

    def covectors(self, gradients: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """Gradients of a function of x become those of the same function of w: scaleᵀ g."""
        return gradients @ self.scale

    @property
    def log_det(self):
        return jnp.sum(jnp.log(jnp.diagonal(self.scale)))


def whitening_of(points: Points, weights: PerParticle | None = None) -> Whitening:
    """The frame of a set, or of a weighted one, defined whatever the set.

    With enough particles this is their own mean and covariance (divided by n, so that whitened points have second
    moment exactly one). With fewer than 2d the covariance is drawn towards its diagonal, more so the fewer there
    are, because directions that the set does not span would otherwise have no scale. A ridge relative to the
    average variance keeps collapsed directions finite.
    """
    n, d = points.shape
    mean = jnp.mean(points, axis=0) if weights is None else weights @ points
    centred = points - mean
    cov = centred.T @ centred / n if weights is None else (weights[:, None] * centred).T @ centred
    shrink = 0.5 * max(0.0, 1.0 - (n - 1) / (2 * d))  # from shapes alone: no branch at run time
    if shrink > 0:
        cov = (1 - shrink) * cov + shrink * jnp.diag(jnp.diagonal(cov))
    # float32 carries 1e-7: the ridge stands well above it, and far below any direction that matters
    ridge = 1e-6 * jnp.trace(cov) / d + 1e-20
    eye = jnp.eye(d, dtype=points.dtype)
    scale = jnp.linalg.cholesky(cov + ridge * eye)
    return Whitening(mean, scale, jax.scipy.linalg.solve_triangular(scale, eye, lower=True))
