"""Streams row by row: the model under the conditions of one row, and a method's particles at every stage."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.inference.method import Method, State, Stream, record, start
from pfbr.models.base import Model
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Observations, PerParticle, Points


class StreamRow(Stream):
    """One row of a stream, or all of them along the first axis, each with the time at which it came."""

    time: Array | None = None

    def conditions(self, model: Model, params: Any = None) -> Conditions:
        """What came with this one row, as far as the model asks for it."""
        words = all_needs(model)
        time = self.time if "time" in words else None
        return Conditions(self.dt, time, self.inputs if "inputs" in words else None, self.observed, params)

    def bound(self, model: Model, params: Any = None) -> Model:
        """The model under the conditions of this one row."""
        asked = self.observed is not None or "observed" in all_needs(model)
        shape = self.observations.shape if asked else None
        return bind(model, self.conditions(model, params), shape=shape)

    def log_likelihoods(self, model: Model, points: Points, parameters: Any = None) -> PerParticle:
        """log p(this row | x) at each point; with the static parameters that belong to it, where there are any."""

        def one(x, params):
            return self.bound(model, params).log_likelihood(x, self.observations)

        return jax.vmap(one)(points, parameters)


def rows_of(stream: Stream | Observations) -> StreamRow:
    """All rows of one stream; take one out with `jax.tree.map`, or scan over them."""
    stream = as_stream(stream)
    length = stream.observations.shape[0]
    times = jnp.arange(1.0, length + 1) if stream.dt is None else jnp.cumsum(stream.dt)
    return StreamRow(stream.observations, stream.dt, stream.inputs, stream.observed, times)


def as_stream(stream: Stream | Observations | Float[Array, "s t ..."]) -> Stream:
    """Observations alone are a stream, or streams, with which nothing came."""
    return stream if isinstance(stream, Stream) else Stream(jnp.asarray(stream))


@eqx.filter_jit
def begun(key: Key, method: Method, model: Model, stream: Stream, num_particles: int) -> State:
    """The state before the first observation of a stream, as `record` has it."""
    first = jax.tree.map(lambda leaf: leaf[0], rows_of(stream))
    return start(key, method, model, num_particles, first.conditions(model), first.observations.shape)


def at_every_stage(
    key: Key, method: Method, model: Model, stream: Stream | Observations, num_particles: int
) -> Particles:
    """The particles before the first observation and after each, (T + 1, …); as `record` draws them."""
    stream = as_stream(stream)
    first = method.particles(begun(key, method, model, stream, num_particles).own)
    later = record(key, method, model, stream, num_particles).particles
    both = (without_density(particles) for particles in (first, later))
    return jax.tree.map(lambda before, after: jnp.concatenate([before[None], after]), *both)


def without_density(particles: Particles) -> Particles:
    """Points and weights alone: of one structure for all methods, so that what looks at them is compiled once."""
    return eqx.tree_at(lambda p: p.log_density, particles, None, is_leaf=lambda leaf: leaf is None)
