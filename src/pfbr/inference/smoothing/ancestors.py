"""Paths of a particle filter traced back from their ends: smoothing for dynamics that have no density.

Methods that move particles by flows have no ancestors to trace. So the rows are filtered once more by a bootstrap
filter with many particles, which remembers where each came from (Kitagawa 1996). Paths run together as one goes back:
the effective number of different ones at each stage is told.
"""

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.smoothing.backward import Clouds, SmoothedClouds
from pfbr.models.base import StateSpaceModel
from pfbr.models.conditions import Conditions, bind
from pfbr.particles.particles import ess, normalise
from pfbr.particles.resampling import systematic
from pfbr.typing import Key, Observations, Points

TIMES = 16  # particles of the replay for each one of the method
NUMBERS = 2**25  # floats at most that are remembered: 128 MB; with longer streams there are fewer particles
THRESHOLD = 0.5  # share of the particles below which the effective sample size calls for resampling


def replayed(num_particles: int, stages: int, dim: int) -> int:
    """How many particles the replay has."""
    return max(num_particles, min(TIMES * num_particles, NUMBERS // max(stages * dim, 1)))


def traced(
    key: Key, model: StateSpaceModel, begin: Points, observations: Observations, conditions: Conditions, paths: int
) -> SmoothedClouds:
    """Paths through all rows from equally weighted states `begin`, which are the first stage: T + 1 in all."""
    n = begin.shape[0]
    even = jnp.full((n,), -jnp.log(float(n)), begin.dtype)

    def forward(carry, row):
        points, log_weights = carry
        step_key, observation, given = row
        resample_key, move_key = jax.random.split(step_key)
        poor = ess(log_weights) < THRESHOLD * n
        ancestors = jnp.where(poor, systematic(resample_key, log_weights, n), jnp.arange(n))
        log_weights = jnp.where(poor, even, log_weights)
        here = bind(model, given, shape=observation.shape)
        points = jax.vmap(here.sample_transition)(jax.random.split(move_key, n), points[ancestors])  # type: ignore[attr-defined]
        values = jax.vmap(here.log_likelihood, (0, None))(points, observation)
        weighed = log_weights + jnp.where(jnp.isnan(values), -jnp.inf, values)
        # a row that no particle can explain is left out: the filter has lost the track, and few paths will tell
        alive = jnp.isfinite(jax.nn.logsumexp(weighed))
        log_weights = normalise(jnp.where(alive, weighed, log_weights))
        return (points, log_weights), (points, ancestors)

    keys = jax.random.split(jax.random.fold_in(key, 1), observations.shape[0])
    (_, log_weights), (clouds, ancestors) = jax.lax.scan(forward, (begin, even), (keys, observations, conditions))
    clouds = jnp.concatenate([begin[None], clouds])
    ends = systematic(jax.random.fold_in(key, 2), log_weights, paths)

    def back(at: Array, stage):
        cloud, came_from = stage
        before = came_from[at]
        return before, (cloud[before], _effective_number(before, n))

    _, (earlier, left) = jax.lax.scan(back, ends, (clouds[:-1], ancestors), reverse=True)
    states = jnp.concatenate([earlier, clouds[-1][ends][None]])
    numbers = jnp.append(left, _effective_number(ends, n))
    log_weights = jnp.full(states.shape[:2], -jnp.log(float(paths)), states.dtype)
    return SmoothedClouds(Clouds(states, log_weights), states, numbers)


def _effective_number(which: Array, n: int) -> Array:
    """Of different particles among so many draws of them."""
    share = jnp.zeros(n).at[which].add(1.0 / which.shape[0])
    return 1.0 / jnp.sum(share**2)
