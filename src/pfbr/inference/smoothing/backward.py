"""From filtering clouds back to smoothed ones, by the density of the transition between them.

Forward filtering, backward smoothing (Doucet, Godsill and Andrieu 2000; Godsill, Doucet and West 2004). With weights W
of the later cloud given everything, those of the earlier one are

    w_n|T = w_n Σ_m W_m p(x'_m | x_n) / Σ_l w_l p(x'_m | x_l),

and a path goes on from x'_m to x_n with the probability of the m-th term. N² densities a stage.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.models.base import StateSpaceModel
from pfbr.models.conditions import Conditions, bind, stays
from pfbr.particles.particles import ess, normalise
from pfbr.particles.resampling import systematic
from pfbr.typing import Key

MOST = 1024  # particles of a cloud: larger ones are thinned first, so that a stage costs at most a million densities


class Clouds(eqx.Module):
    """Weighted particles of each of T stages."""

    points: Float[Array, "*t n d"]
    log_weights: Float[Array, "*t n"]


class SmoothedClouds(eqx.Module):
    """Weighted particles of each stage given everything, paths through them, and the effective sample sizes."""

    clouds: Clouds
    paths: Float[Array, "*t m d"]
    ess: Float[Array, "*t"]


def backward(key: Key, model: StateSpaceModel, clouds: Clouds, conditions: Conditions) -> SmoothedClouds:
    """`clouds` (T, n, …) are those of the filter; `conditions` (T, …) came with the report that each has seen last."""
    clouds = _thinned(jax.random.fold_in(key, 1), clouds)
    last = jax.tree.map(lambda leaf: leaf[-1], clouds)
    n = last.points.shape[0]
    begun = (last.points, last.log_weights, systematic(key, last.log_weights, n))

    def back(carry, stage):
        later, log_later, at = carry
        stage_key, cloud, given = stage
        here = bind(model, given)
        to_from = jax.vmap(lambda x: jax.vmap(lambda x_next: here.log_transition(x_next, x))(later))(cloud.points)  # type: ignore[attr-defined]
        joint = cloud.log_weights[:, None] + jnp.where(jnp.isnan(to_from), -jnp.inf, to_from)
        predicted = jax.nn.logsumexp(joint, axis=0)
        # a later point that no earlier one can lead to says nothing of where it came from
        reached = jnp.isfinite(predicted)
        kernel = jnp.where(reached, joint - jnp.where(reached, predicted, 0.0), cloud.log_weights[:, None])
        log_weights = normalise(jax.nn.logsumexp(kernel + log_later, axis=1))
        came_from = _drawn(stage_key, kernel[:, at])
        after = (cloud.points, log_weights, came_from)
        still = stays(here)
        if still is not None:  # another report at the same instant: the same state
            after = jax.tree.map(lambda moved, same: jnp.where(still, same, moved), after, carry)
        points, log_weights, at = after
        return after, (points, log_weights, points[at])

    earlier = jax.tree.map(lambda leaf: leaf[:-1], clouds)
    given = jax.tree.map(lambda leaf: leaf[1:], conditions)
    keys = jax.random.split(jax.random.fold_in(key, 2), clouds.points.shape[0] - 1)
    _, before = jax.lax.scan(back, begun, (keys, earlier, given), reverse=True)
    end = (last.points, last.log_weights, last.points[begun[2]])
    points, log_weights, paths = jax.tree.map(lambda rows, one: jnp.concatenate([rows, one[None]]), before, end)
    return SmoothedClouds(Clouds(points, log_weights), paths, jax.vmap(ess)(log_weights))


def _thinned(key: Key, clouds: Clouds) -> Clouds:
    """At most `MOST` particles of each cloud, equally weighted where some had to go."""
    if clouds.points.shape[1] <= MOST:
        return clouds
    keys = jax.random.split(key, clouds.points.shape[0])
    kept = jax.vmap(lambda k, log_weights: systematic(k, log_weights, MOST))(keys, clouds.log_weights)
    points = jnp.take_along_axis(clouds.points, kept[..., None], axis=1)
    return Clouds(points, jnp.full(kept.shape, -jnp.log(float(MOST)), points.dtype))


def _drawn(key: Key, log_columns: Float[Array, "n m"]) -> Array:
    """One row index for each column of log probabilities."""
    below = jnp.cumsum(jnp.exp(log_columns), axis=0)
    positions = jax.random.uniform(key, (log_columns.shape[1],)) * below[-1]
    return jnp.minimum(jnp.sum(below <= positions, axis=0), log_columns.shape[0] - 1)
