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


def whitening_of(points: Points, weights: PerParticle | None = None, *, shrink: bool = True) -> Whitening:
    """The whitening of a set, or of a weighted one, defined whatever the set, and free of units.

    Coordinates are scaled first, so that the only ridge is a few roundings of a correlation matrix: another unit for
    one unknown changes nothing but that unknown, and a power of two not even the last bit. With fewer than 2d particles
    the correlations are drawn towards zero (unless `shrink` is off), more so the fewer there are, because directions
    that the set does not span would otherwise have no scale. A direction in which the set has collapsed altogether has
    the scale one.
    """
    n, d = points.shape
    share = jnp.full((n,), 1.0 / n, points.dtype) if weights is None else weights
    mean = share @ points
    mean = mean + share @ (points - mean)  # once more about the first estimate: float32 loses digits far from zero
    centred = points - mean
    largest = jnp.max(jnp.abs(jnp.where(share[:, None] > 0, centred, 0.0)), axis=0)
    # the unit of each coordinate, a power of two: squares then neither overflow nor vanish
    reach = jnp.where(largest > 0, largest, 1.0)
    unit = jax.lax.stop_gradient(jnp.exp2(jnp.ceil(jnp.log2(reach))))
    scaled = centred / unit
    variance = share @ scaled**2
    std = jnp.sqrt(jnp.where(variance > 0, variance, 1.0))  # chosen before the root, whose slope at zero is none
    standard = scaled / std
    correlation = (share[:, None] * standard).T @ standard
    drawn = 0.5 * max(0.0, 1.0 - (n - 1) / (2 * d)) if shrink else 0.0  # from shapes alone: no branch at run time
    eye = jnp.eye(d, dtype=points.dtype)
    if drawn > 0:
        correlation = (1 - drawn) * correlation + drawn * eye * jnp.diagonal(correlation)
    factor = jnp.linalg.cholesky(correlation + 4 * d * jnp.finfo(points.dtype).eps * eye)
    inverse = jax.scipy.linalg.solve_triangular(factor, eye, lower=True)
    spread = unit * std
    return Whitening(mean, spread[:, None] * factor, inverse / spread)
