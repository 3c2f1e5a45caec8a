"""The cloud after some time has passed."""

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.cloud import Cloud, equally_weighted
from pfbr.inference.adaptive.filter.model import FilterModel
from pfbr.inference.adaptive.filter.noise import transition_normals
from pfbr.particles.qmc import MAX_SOBOL_DIM, draw_prior

MAX_QUASI = 1024  # beyond, noise averages out by itself, and the time is better spent on more particles


def first_cloud(key: Array, model: FilterModel, num_particles: int) -> Cloud:
    """Draws from the prior: quasi-random and matched where it is a function of normals, independent otherwise."""
    return equally_weighted(draw_prior(key, model.first_at(), num_particles, qmc=num_particles <= MAX_QUASI))


def predict(key: Array, model, cloud: Cloud, dt, conditions, *, match: bool = True) -> Cloud:
    """Every particle moved by the dynamics; no time, no move."""
    n = cloud.points.shape[0]
    if model.offers("transition_from_normal"):
        quasi = match and n <= MAX_QUASI and model.dim <= MAX_SOBOL_DIM
        noise = transition_normals(key, cloud.points, cloud.weights) if quasi else _normals(key, cloud.points)
        moved = jax.vmap(lambda x, z: model.transition_from_normal(x, z, dt, conditions))(cloud.points, noise)
    else:
        moved = jax.vmap(lambda k, x: model.sample_transition(k, x, dt, conditions))(
            jax.random.split(key, n), cloud.points
        )
    predicted = jnp.where(jnp.asarray(dt) > 0, moved, cloud.points)
    return cloud.at(predicted)


def redraw(key: Array, model, cloud: Cloud, dt, conditions, times: int) -> Array:
    """`times` further draws of the dynamics from each particle, independent, those of one particle together."""
    points = jnp.repeat(cloud.points, times, axis=0)
    if model.offers("transition_from_normal"):
        moved = jax.vmap(lambda x, z: model.transition_from_normal(x, z, dt, conditions))(points, _normals(key, points))
    else:
        keys = jax.random.split(key, points.shape[0])
        moved = jax.vmap(lambda k, x: model.sample_transition(k, x, dt, conditions))(keys, points)
    return jnp.where(jnp.asarray(dt) > 0, moved, points)


def _normals(key: Array, points: Array) -> Array:
    """All from one key: a key for each particle takes as long again."""
    return jax.random.normal(key, points.shape, points.dtype)
