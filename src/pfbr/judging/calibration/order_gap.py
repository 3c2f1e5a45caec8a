"""How far apart two orders of the same data end, for static models: the true posterior does not depend on it."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.inference.method import Method, Stream, record
from pfbr.models.base import Model
from pfbr.models.simulate import Simulated
from pfbr.particles.particles import weighted_cov, weighted_mean
from pfbr.typing import Key

STREAMS = 32  # a root mean square over so many is known to an eighth


@eqx.filter_jit
def order_gap(key: Key, method: Method, model: Model, drawn: Simulated, num_particles: int):
    """Distance of the last means in posterior standard deviations, root mean square over streams and coordinates: of
    two orders with the same draws, and of two runs of the same order with other draws, which is what chance does."""

    def end(run_key, stream):
        particles = jax.tree.map(lambda leaf: leaf[-1], record(run_key, method, model, stream, num_particles).particles)
        return weighted_mean(particles), jnp.sqrt(jnp.diagonal(weighted_cov(particles)))

    def one(inputs):
        stream_key, stream = inputs
        first_key, second_key, order_key = jax.random.split(stream_key, 3)
        order = jax.random.permutation(order_key, stream.observations.shape[0])
        orders = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf[order], leaf]), stream)
        means, stds = jax.lax.map(lambda run: end(*run), (jnp.stack([first_key, first_key, second_key]), orders))
        return jnp.mean(((means[1:] - means[0]) / stds[0]) ** 2, axis=1)

    few = jax.tree.map(lambda leaf: leaf[:STREAMS], Stream(drawn.observations, drawn.dt, drawn.inputs))
    gaps = jax.lax.map(one, (jax.random.split(key, few.observations.shape[0]), few))
    return tuple(jnp.sqrt(jnp.mean(gaps, axis=0)))
