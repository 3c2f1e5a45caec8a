"""When the buffer is full: fit the oldest rows' log likelihood over the cloud as a quadratic, and let them go."""

import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import solve_positive
from pfbr.inference.adaptive.static.past import BLOCK, Past
from pfbr.inference.adaptive.static.surrogate import Surrogate
from pfbr.inference.adaptive.static.target import Target
from pfbr.particles.whitening import whitening_of


def forget_oldest(
    target: Target, past: Past, surrogate: Surrogate, points: Array, log_weights: Array
) -> tuple[Past, Surrogate]:
    """The oldest block as a quadratic: its scores regressed on the points, its values only to tell the misfit."""
    weights = jax.nn.softmax(log_weights)
    frame = whitening_of(points, weights)
    u = frame.whiten(points)
    rows = jax.tree.map(lambda held: held[:BLOCK], past.rows)
    at_mean = jax.vmap(lambda r: target.log_likelihood(frame.mean, r))(rows)
    at_mean = jnp.where(jnp.isfinite(at_mean), at_mean, 0)

    def block_sum(x):
        return jnp.sum(jax.vmap(lambda r: target.log_likelihood(x, r))(rows) - at_mean)

    values, scores = jax.vmap(jax.value_and_grad(block_sum))(points)
    finite = jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), axis=1)
    weights = jnp.where(finite, weights, 0)
    weights = weights / jnp.maximum(jnp.sum(weights), jnp.finfo(weights.dtype).tiny)
    values, scores = jnp.where(finite, values, 0), jnp.where(finite[:, None], frame.covectors(scores), 0)

    # slope and curvature in the white frame by regression of scores: exact for a quadratic, no noise from the cloud
    d = u.shape[1]
    centre, mean_score = weights @ u, weights @ scores
    v = u - centre
    spread = (weights[:, None] * v).T @ v + 4 * d * jnp.finfo(u.dtype).eps * jnp.eye(d, dtype=u.dtype)
    curvature = -solve_positive(spread, (weights[:, None] * v).T @ (scores - mean_score))
    curvature = 0.5 * (curvature + curvature.T)
    slope = mean_score + curvature @ centre
    left = values - (u @ slope - 0.5 * jnp.sum((u @ curvature) * u, axis=1))
    left = left - weights @ left
    misfit = weights @ left**2

    # from the white frame to coordinates in standard deviations
    std = frame.std
    turn = frame.inverse_scale * std
    moved = surrogate.recentred(frame.mean, std)
    return past.drop(BLOCK), moved.add(turn.T @ slope, turn.T @ curvature @ turn, BLOCK, misfit)
