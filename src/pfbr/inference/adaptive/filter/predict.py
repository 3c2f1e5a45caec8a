"""The cloud after some time has passed."""

from collections.abc import Callable

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud, equally_weighted
from pfbr.inference.adaptive.filter.matching import MAX_MATCHED
from pfbr.inference.adaptive.filter.model import FilterModel
from pfbr.inference.adaptive.filter.noise import transition_normals
from pfbr.particles.qmc import MAX_SOBOL_DIM, draw_prior
from pfbr.typing import Points


def first_cloud(key: Array, model: FilterModel, num_particles: int) -> Cloud:
    """Draws from the prior: quasi-random and matched where it is a function of normals, independent otherwise."""
    return equally_weighted(draw_prior(key, model.first_at(), num_particles))


def draw_noise(key: Array, model: FilterModel, cloud: Cloud, *, match: bool = True) -> Array:
    """What moves each particle, (n, k): standard normals where the model takes them, else the data of a key."""
    n = cloud.points.shape[0]
    if not model.offers("transition_from_normal"):
        return jax.random.key_data(jax.random.split(key, n))
    if match and model.dim <= MAX_SOBOL_DIM:
        # a linear system is exact with matched noise, whatever the number of particles
        matched = model.linear or n <= MAX_MATCHED
        return _made_once(cloud, lambda: transition_normals(key, cloud.points, cloud.weights, match=matched))
    # all from one key: a key for each particle takes as long again
    return jax.random.normal(key, cloud.points.shape, cloud.points.dtype)


def moved(model: FilterModel, points: Points, noise: Array, dt, conditions) -> Points:
    """Every particle moved by the dynamics and its noise; no time, no move."""
    if model.offers("transition_from_normal"):
        after = jax.vmap(lambda x, z: model.transition_from_normal(x, z, dt, conditions))(points, noise)
    else:
        keys = jax.random.wrap_key_data(noise)
        after = jax.vmap(lambda k, x: model.sample_transition(k, x, dt, conditions))(keys, points)
    return jnp.where(jnp.asarray(dt) > 0, after, points)


def _made_once(cloud: Cloud, make: Callable[[], Points]) -> Points:
    """What `make` makes, before it is used. The compiler would make quasi-random normals anew wherever a transition
    looks at them, five times as slow for four unknowns; behind a condition, though it always holds, it does not."""
    always = ~(cloud.log_weights[0] > 1)  # of a log weight, or of NaN
    return jax.lax.cond(always, make, lambda: jnp.zeros_like(cloud.points))


def predict(key: Array, model: FilterModel, cloud: Cloud, dt, conditions, *, match: bool = True) -> Cloud:
    return cloud.at(moved(model, cloud.points, draw_noise(key, model, cloud, match=match), dt, conditions))
