"""The cloud's own frame, free of units: scaled per coordinate first, then turned by the factor of the correlations.

A ridge on a covariance has units; one of a few machine epsilons on a correlation matrix has none. Multiply a coordinate
by a power of two and every number in the frame stays the same, bit for bit.
"""

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp


class Whitening(eqx.Module):
    """x = mean + scale * (factor w): w has mean 0 and covariance I over the cloud that it was fitted to."""

    mean: Array  # (d,)
    scale: Array  # (d,) standard deviations
    factor: Array  # (d, d) lower Cholesky factor of the correlations

    def whiten(self, points: Array) -> Array:
        z = (points - self.mean) / self.scale
        return jax.scipy.linalg.solve_triangular(self.factor, z.T, lower=True).T

    def unwhiten(self, white: Array) -> Array:
        return self.mean + self.scale * (white @ self.factor.T)

    def scores(self, scores: Array) -> Array:
        """Scores in x as scores in w."""
        return (scores * self.scale) @ self.factor


def rounding(frame: Whitening) -> Array:
    """The distance of neighbouring floats in standard deviations, for the coordinate that is worst off."""
    return jnp.max(jnp.finfo(frame.mean.dtype).eps * jnp.abs(frame.mean) / frame.scale)


def weighted_mean(points: Array, weights: Array) -> Array:
    """Summed as differences from one of the points: an offset of 1e5 with a spread of 1 costs no digits."""
    start = points[jnp.argmax(weights)]
    return start + weights @ (points - start)


def fit_whitening(points: Array, weights: Array) -> Whitening:
    mean = weighted_mean(points, weights)
    centred = points - mean
    # a length first: squares of centred values would leave float32's range sooner
    length = jnp.max(jnp.where(weights[:, None] > 0, jnp.abs(centred), 0), axis=0)
    length = jnp.where(length > 0, length, 1)
    scale = length * jnp.sqrt(weights @ (centred / length) ** 2)
    scale = jnp.where(scale > 0, scale, length)
    z = centred / scale
    correlations = (weights[:, None] * z).T @ z
    d = points.shape[1]
    eps = jnp.finfo(points.dtype).eps

    def factor(ridge):
        return jnp.linalg.cholesky(correlations + ridge * eps * jnp.eye(d, dtype=points.dtype))

    # a few epsilons are enough for correlations of 0.99999; a collapsed cloud gets more until the factor exists
    tight, loose = factor(4.0 * d), factor(1e4)
    plain = jnp.eye(d, dtype=points.dtype)
    usable = lambda a: jnp.all(jnp.isfinite(a))
    return Whitening(mean, scale, jnp.where(usable(tight), tight, jnp.where(usable(loose), loose, plain)))
