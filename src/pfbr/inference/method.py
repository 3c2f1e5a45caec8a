"""The contract of every online method, and the loop that runs one over a stream.

A method is three pure functions of explicit state: `init`, `update`, `particles`. State is what the next step
needs; info is for looking. The operator and every rival keep this contract, so that one loop, one judge and one
set of tests serve all of them.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.models.base import Model
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Observation, Observations


class OnlineMethod(eqx.Module):
    """One way to update a posterior when an observation arrives."""

    @abstractmethod
    def init(self, key: Key, model: Model, num_particles: int) -> Any:
        """The state before any observation."""

    @abstractmethod
    def update(self, key: Key, model: Model, state: Any, observation: Observation) -> tuple[Any, dict]:
        """The state after one more observation, and what is worth knowing about the step."""

    @abstractmethod
    def particles(self, state: Any) -> Particles:
        """The current posterior as weighted particles."""

    def unsupported(self, model: Model) -> str | None:
        """Why this method cannot do the model, in a sentence; None where it can."""
        return None


class Trace(eqx.Module):
    """What a method said after each of T observations."""

    particles: Particles  # leading axis: stage
    info: dict


@eqx.filter_jit
def trace(key: Key, method: OnlineMethod, model: Model, observations: Observations, num_particles: int) -> Trace:
    """Run one stream from the start, compiled as one scan; inputs are trusted (see `pfbr.run` for the checked edge)."""
    init_key, steps_key = jax.random.split(key)

    def advance(state, inputs):
        step_key, observation = inputs
        state, info = method.update(step_key, model, state, observation)
        return state, Trace(method.particles(state), info)

    state = method.init(init_key, model, num_particles)
    keys = jax.random.split(steps_key, jnp.shape(observations)[0])
    return jax.lax.scan(advance, state, (keys, observations))[1]


@eqx.filter_jit
def trace_many(key: Key, method: OnlineMethod, model: Model, observations, num_particles: int) -> Trace:
    """Many streams (S, T, …) at once, each with a key of its own."""
    keys = jax.random.split(key, jnp.shape(observations)[0])
    return jax.vmap(lambda k, o: trace(k, method, model, o, num_particles))(keys, observations)
