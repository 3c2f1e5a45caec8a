"""A likelihood as a weighted cloud sees it, in the cloud's own frame: the averages that every field is made of."""

from collections.abc import Callable

import equinox as eqx
from jax import numpy as jnp

from pfbr.particles.whitening import Whitening, whitening_of
from pfbr.typing import Matrix, PerParticle, Point, Points, Scalar

TINY = 1e-6  # sizes are not divided by less: a likelihood that says nothing has no direction either


class Seen(eqx.Module):
    """Whitened points w, their weights, values ℓ − median ℓ and scores u = scaleᵀ ∇ℓ, and what follows from these.

    `level`, `size` and `spread` are those of the bulk of the cloud: under a sharp observation a few particles in the
    tail have scores that are hundreds of times those of all others.
    """

    frame: Whitening
    points: Points
    weights: PerParticle
    values: PerParticle
    scores: Points
    level: Scalar  # the median that was subtracted from the values
    lowest: Scalar  # the least of the values that are finite
    mean_score: Point
    curvature: Matrix  # C = sym(mean (u − ū) wᵀ)
    sharpness: Scalar  # root mean square of the scores
    strength: Scalar  # `size`, and zero where there is no score at all
    size: Scalar  # of the scores: the square of their mean root length
    spread: Scalar  # of the values, in the same way


ValuesAndScores = Callable[[Points], tuple[PerParticle, Points]]


def see(support: Points, weights: PerParticle | None, values_and_scores: ValuesAndScores) -> Seen:
    n = support.shape[0]
    weights = jnp.full((n,), 1 / n, support.dtype) if weights is None else weights
    frame = whitening_of(support, weights)
    values, scores = values_and_scores(support)
    # A particle that the observation rules out (−inf) has no score; it counts like the least likely of the others.
    alive = jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), axis=1)
    lowest = jnp.min(jnp.where(alive, values, jnp.inf))
    values = jnp.where(alive, values, lowest)
    scores = jnp.where(alive[:, None], frame.covectors(scores), 0)
    level = _median(values, weights)
    values = values - level
    points = frame.whiten(support)
    mean_score = weights @ scores
    slope = (weights[:, None] * (scores - mean_score)).T @ points
    sharpness = _root(weights @ jnp.sum(scores**2, axis=1))
    size = _bulk(sharpness, weights, jnp.sum(scores**2, axis=1))
    return Seen(
        frame,
        points,
        weights,
        values,
        scores,
        level,
        lowest,
        mean_score,
        0.5 * (slope + slope.T),
        sharpness,
        jnp.where(sharpness > 0, size, 0),
        size,
        _bulk(_root(weights @ values**2), weights, values**2),
    )


def _bulk(root_mean_square: Scalar, weights: PerParticle, squares: PerParticle) -> Scalar:
    """(E √length)², but no less than a hundredth of the root mean square: some clouds have no bulk."""
    typical = (weights @ jnp.sqrt(jnp.sqrt(jnp.maximum(squares, TINY**2)))) ** 2
    return jnp.maximum(jnp.maximum(typical, 0.01 * root_mean_square), TINY)


def _median(values: PerParticle, weights: PerParticle) -> Scalar:
    order = jnp.argsort(values)
    below = jnp.cumsum(weights[order])
    return values[order][jnp.searchsorted(below, 0.5 * below[-1])]


def _root(square: Scalar) -> Scalar:
    """Of zero too, where a root has no slope."""
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
