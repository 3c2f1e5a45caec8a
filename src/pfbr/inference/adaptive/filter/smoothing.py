"""States given what came later: backward simulation where the transition has a density, ancestors otherwise.

Backward simulation (Godsill, Doucet and West 2004) draws whole trajectories: the last state from the last cloud, each
earlier one from its cloud, weighed by the transition to the state already drawn. Without a density the trajectories are
those that the particles themselves took; their ESS, the number of different ancestors that the weights leave, falls
with every resampling, and says how far back they can be trusted.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.particles.resampling import systematic


class Smoothed(eqx.Module):
    trajectories: Array  # (T, m, d), equally weighted
    ess: Array  # (T,): effective number of different particles behind them

    @property
    def mean(self) -> Array:
        return jnp.mean(self.trajectories, axis=1)

    @property
    def covariance(self) -> Array:
        centred = self.trajectories - self.mean[:, None]
        return jnp.einsum("tmi,tmj->tij", centred, centred) / centred.shape[1]


def smooth(key: Array, model, clouds: Cloud, dts: Array, conditions, *, num: int | None = None) -> Smoothed:
    """`clouds`: those after each report, stacked (T, n, …); `dts` and `conditions` of the same reports."""
    num = clouds.points.shape[1] if num is None else num
    last_key, key = jax.random.split(key)
    last = systematic(last_key, clouds.log_weights[-1], num)
    draw = _backward if model.offers("log_transition") else _ancestors
    return draw(key, model, clouds, dts, conditions, last)


def _distinct(index: Array, size: int) -> Array:
    """Effective number of different particles among those drawn."""
    share = jnp.zeros(size).at[index].add(1 / index.shape[0])
    return 1 / jnp.sum(share**2)


def _backward(key, model, clouds: Cloud, dts, conditions, last) -> Smoothed:
    size = clouds.points.shape[1]
    final = clouds.points[-1][last]

    def body(after, report):
        # the cloud before a step of dt, under conditions, that led to `after`
        key, points, log_weights, dt, conditions = report
        to = jax.vmap(lambda x, a: model.log_transition(x, a, dt, conditions), (None, 0))
        weighed = log_weights + jax.vmap(to, (0, None))(after, points)
        # no time, no transition: the same particle; and where every density is zero, the weights alone
        weighed = jnp.where(jnp.isfinite(jnp.max(weighed, axis=1, keepdims=True)), weighed, log_weights)
        chosen = jax.random.categorical(key, weighed, axis=1)
        state = points[chosen]
        return state, (state, _distinct(chosen, size))

    keys = jax.random.split(key, dts.shape[0] - 1)
    before = jax.tree.map(lambda a: a[:-1], (clouds.points, clouds.log_weights))
    later = jax.tree.map(lambda a: a[1:], (dts, conditions))
    _, (states, counts) = jax.lax.scan(body, final, (keys, *before, *later), reverse=True)
    return Smoothed(jnp.concatenate([states, final[None]]), jnp.append(counts, _distinct(last, size)))


def _ancestors(key, model, clouds: Cloud, dts, conditions, last) -> Smoothed:
    size = clouds.points.shape[1]

    def body(index, report):
        points, parent = report
        return parent[index], (points[index], _distinct(index, size))

    _, (states, counts) = jax.lax.scan(body, last, (clouds.points, clouds.parent), reverse=True)
    return Smoothed(states, counts)
