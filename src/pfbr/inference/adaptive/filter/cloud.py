"""Weighted particles, and which of them come from one ancestor."""

import equinox as eqx
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.matching import MAX_MATCHED, matched
from pfbr.particles.particles import ess
from pfbr.particles.particles import normalise as normalised
from pfbr.particles.resampling import systematic
from pfbr.particles.whitening import weighted_mean, whitening_of


class Cloud(eqx.Module):
    points: Array  # (n, d)
    log_weights: Array  # (n,), normalised
    family: Array  # (n,) int: the ancestor at the last resampling
    parent: Array  # (n,) int: the particle before this report's prediction that each comes from

    def at(self, points: Array, log_weights: Array | None = None) -> "Cloud":
        """The same particles elsewhere, or weighed otherwise."""
        return Cloud(points, self.log_weights if log_weights is None else log_weights, self.family, self.parent)

    @property
    def weights(self) -> Array:
        return jnp.exp(self.log_weights)

    @property
    def mean(self) -> Array:
        return weighted_mean(self.points, self.weights)

    @property
    def covariance(self) -> Array:
        centred = self.points - self.mean
        return (self.weights[:, None] * centred).T @ centred

    @property
    def ess(self) -> Array:
        return ess(self.log_weights)


def equally_weighted(points: Array) -> Cloud:
    n = points.shape[0]
    return Cloud(points, jnp.full(n, -jnp.log(n), points.dtype), jnp.arange(n), jnp.arange(n))


def resampled(
    key: Array, points: Array, log_weights: Array, parent: Array, num: int | None = None, *, match: Array | bool = True
) -> Cloud:
    """Equal weights, with mean and covariance kept: what resampling adds in noise to the first two moments is taken
    out again by one affine map, where there are enough ancestors for it. `match=False`: points stay as they are, and so
    do very many of them."""
    num = points.shape[0] if num is None else num
    log_weights = normalised(log_weights)
    ancestors = systematic(key, log_weights, num)
    chosen = points[ancestors]
    if num <= MAX_MATCHED:
        target = whitening_of(points, jnp.exp(log_weights), shrink=False)
        corrected = matched(chosen, jnp.full(num, 1 / num, points.dtype), target)
        # with fewer the correction is a guess as rough as what it corrects
        enough = ess(log_weights) > 4 * points.shape[1]
        chosen = jnp.where(enough & match & jnp.all(jnp.isfinite(corrected)), corrected, chosen)
    return Cloud(chosen, jnp.full(num, -jnp.log(num), points.dtype), ancestors, parent[ancestors])
