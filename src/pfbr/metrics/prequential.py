"""How well the next observations are foretold: predict, then see, then update; no truth is needed."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.inference.method import OnlineMethod
from pfbr.models.base import Model
from pfbr.models.minibatch import MiniBatch
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Observation, Observations


def log_predictive(particles: Particles, model: Model, observation: Observation) -> Float[Array, " l"]:
    """log Σ_n w_n p(o | x_n): one number, or one for each member of a batch, every member by itself."""
    single, members = (model.model, observation) if isinstance(model, MiniBatch) else (model, observation[None])
    each = jax.vmap(jax.vmap(single.log_likelihood, (0, None)), (None, 0))(particles.points, members)
    return jax.nn.logsumexp(each + particles.log_weights, axis=1)


def foretell(
    key: Key, method: OnlineMethod, model: Model, observations: Observations, num_particles: int
) -> Float[Array, "t l"]:
    """`log_predictive` of every observation before it is seen, from the prior on. Draws are those of `online.trace`."""
    init_key, steps_key = jax.random.split(key)
    keys = jax.random.split(steps_key, jnp.shape(observations)[0])
    return foretell_from(method.init(init_key, model, num_particles), keys, method, model, observations)


def foretell_from(state, keys, method: OnlineMethod, model: Model, observations: Observations):
    """The same from a state in the middle of a stream."""

    def advance(state, inputs):
        step_key, observation = inputs
        foretold = log_predictive(method.particles(state), model, observation)
        return method.update(step_key, model, state, observation)[0], foretold

    return jax.lax.scan(advance, state, (keys, observations))[1]


@eqx.filter_jit
def foretell_many(key: Key, method: OnlineMethod, model: Model, streams, num_particles: int) -> Float[Array, "s t l"]:
    """Many streams (S, T, …), one after the other: memory stays small, and it compiles once."""

    def one(inputs):
        stream_key, observations = inputs
        return foretell(stream_key, method, model, observations, num_particles)

    return jax.lax.map(one, (jax.random.split(key, jnp.shape(streams)[0]), streams))
