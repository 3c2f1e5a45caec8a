"""The prequential score: predict, then see, then update; no truth is needed."""

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.inference.method import Given, Method, Stream, advance, start, step_key
from pfbr.models.base import Model
from pfbr.models.conditions import Conditions, bind, conditions_of, unbound
from pfbr.models.minibatch import MiniBatch
from pfbr.models.needs import all_needs
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Observation, Observations


def log_predictive(particles: Particles, model: Model, observation: Observation) -> Float[Array, " l"]:
    """log Σ_n w_n p(o | x_n): one number, or one for each member of a batch, every member by itself."""
    inner, given = unbound(model), conditions_of(model)
    if isinstance(inner, MiniBatch):

        def member(one, inputs):
            own = bind(inner.model, Conditions(given.dt, given.time, inputs))
            return jax.vmap(own.log_likelihood, (0, None))(particles.points, one)

        each = jax.vmap(member)(observation, given.inputs)
    else:
        each = jax.vmap(model.log_likelihood, (0, None))(particles.points, observation)[None]
    return jax.nn.logsumexp(each + particles.log_weights, axis=1)


def prequential(
    key: Key, method: Method, model: Model, stream: Stream | Observations, num_particles: int
) -> Float[Array, "t l"]:
    """`log_predictive` of every observation before it is seen, from the prior on. Draws are those of `record`.

    For moving unknowns this is the density of the particles before they move: the dynamics are not part of it.
    """
    stream = stream if isinstance(stream, Stream) else Stream(jnp.asarray(stream))
    words = all_needs(model)

    def given(row, time):
        return Conditions(row.dt, time if "time" in words else None, row.inputs, row.observed)

    def one(state, row):
        bound = bind(model, given(row, state.time))
        predicted = log_predictive(method.particles(state.own), bound, row.observations)
        came = Given(row.dt, row.inputs, row.observed)
        state, _ = advance(step_key(key, state.stage + 1), method, model, state, row.observations, came)
        return state, predicted

    first = jax.tree.map(lambda leaf: leaf[0], stream)
    begun = start(key, method, model, num_particles, given(first, jnp.zeros(())))
    return jax.lax.scan(one, begun, stream)[1]
