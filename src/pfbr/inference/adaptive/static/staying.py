"""Where no row is kept: moves that lead the cloud elsewhere than its weights say are not made.

What is carried of the past is exact at the particles, so that weighing them by a row is right whatever was done to the
past between them. Moves believe its continuation, and may follow it into tails that are its own invention. Mean and
spread of both clouds must agree to what chance allows; else the particles stay where they are, with unequal weights,
and the effective sample size tells what is left of them.
"""

import jax
from jax import Array
from jax import numpy as jnp

from pfbr.particles.particles import ess
from pfbr.particles.whitening import whitening_of

MEANS, SPREADS = 3.5, 5.0  # standard errors: spreads of clouds with long tails vary more
LEAST = 4.0  # effective particles for each dimension: fewer say nothing


def few(dim: int) -> float:
    """Effective particles that cannot tell a mean and a spread."""
    return LEAST * max(dim, 2)


def spent(dim: int) -> int:
    """So few that moves are all there is, wherever they lead."""
    return max(dim, 2)


def astray(points: Array, log_weights: Array, moved: Array, moved_log_weights: Array) -> Array:
    """Whether a moved cloud has another mean or spread than the weighted one, along each direction of the former's
    frame: that of few effective particles is narrow in some direction by chance."""
    before, after = jax.nn.softmax(log_weights), jax.nn.softmax(moved_log_weights)
    left, now = ess(log_weights), ess(moved_log_weights)
    frame = whitening_of(moved, after)
    u, v = frame.whiten(points), frame.whiten(moved)
    chance = jnp.sqrt(1 / jnp.maximum(left, 1) + 1 / jnp.maximum(now, 1))
    mean_u, mean_v = before @ u, after @ v
    shift = jnp.max(jnp.abs(mean_v - mean_u))
    widths = jnp.log(after @ (v - mean_v) ** 2) - jnp.log(before @ (u - mean_u) ** 2)
    widening = 0.5 * jnp.max(jnp.abs(widths))
    apart = (shift > MEANS * chance) | (widening > SPREADS * chance / jnp.sqrt(2.0))
    return (left >= few(points.shape[1])) & (apart | ~jnp.isfinite(shift + widening))
