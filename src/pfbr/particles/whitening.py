"""The affine frame of a particle set: the coordinates in which the set has mean zero and covariance one."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float

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

    @property
    def std(self) -> Point:
        """Of each coordinate. By a length first: squares would leave float32's range sooner."""
        length = jnp.max(jnp.abs(self.scale), axis=1)
        return length * jnp.sqrt(jnp.sum((self.scale / length[:, None]) ** 2, axis=1))

    @property
    def rounding(self) -> Float[Array, ""]:
        """The distance of neighbouring floats in standard deviations, for the coordinate that is worst off."""
        return jnp.max(jnp.finfo(self.mean.dtype).eps * jnp.abs(self.mean) / self.std)

    @property
    def exists(self) -> Bool[Array, ""]:
        finite = jnp.all(jnp.isfinite(self.mean)) & jnp.all(jnp.isfinite(self.inverse_scale))
        return finite & jnp.all(jnp.diagonal(self.scale) > 0)

    def inner(self, mean: Point, root: Matrix) -> "Whitening":
        """The frame of N(mean, root rootᵀ), both given in this one. NaN where that normal is none."""
        turned = self.scale @ root
        length = jnp.max(jnp.abs(turned), axis=1)
        length = length * jnp.sqrt(jnp.sum((turned / length[:, None]) ** 2, axis=1))
        turned = turned / length[:, None]
        return _of_correlation(self.restore(mean), length, turned @ turned.T)


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
    mean = weighted_mean(points, share)
    # coordinates first: sums over thousands of particles then run along memory, which takes a third of the time
    centred = points.T - mean[:, None]
    largest = jnp.max(jnp.where(share > 0, jnp.abs(centred), 0.0), axis=1)
    # a unit for each coordinate, so that squares neither overflow nor vanish
    unit = jax.lax.stop_gradient(jnp.where(largest > 0, largest, 1.0))
    scaled = centred / unit[:, None]
    variance = scaled**2 @ share
    std = jnp.sqrt(jnp.where(variance > 0, variance, 1.0))  # chosen before the root, whose slope at zero is none
    standard = scaled / std[:, None]
    correlation = (standard * share) @ standard.T
    drawn = 0.5 * max(0.0, 1.0 - (n - 1) / (2 * d)) if shrink else 0.0  # from shapes alone: no branch at run time
    eye = jnp.eye(d, dtype=points.dtype)
    if drawn > 0:
        correlation = (1 - drawn) * correlation + drawn * eye * jnp.diagonal(correlation)
    return _of_correlation(mean, unit * std, correlation + 4 * d * jnp.finfo(points.dtype).eps * eye)


def weighted_mean(points: Points, weights: PerParticle) -> Point:
    """Summed twice, the second time about the first sum: float32 loses digits far from zero."""
    mean = points.T @ weights
    return mean + (points.T - mean[:, None]) @ weights


def _of_correlation(mean: Point, std: Point, correlation: Matrix) -> Whitening:
    factor = jnp.linalg.cholesky(correlation)
    inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(len(std), dtype=std.dtype), lower=True)
    return Whitening(mean, std[:, None] * factor, inverse / std)
