"""Inference problems to learn from: a model, a stream, and the law from which training draws them."""

from abc import abstractmethod

import equinox as eqx
import jax
from jaxtyping import Array, Float

from pfbr.models.base import Model, StateSpaceModel
from pfbr.typing import Key, Observations, Point


class Task(eqx.Module):
    """A model together with a stream drawn from it. `truths` are the unknowns behind each observation."""

    model: Model
    observations: Observations
    truths: Float[Array, "t d"]


class Family(eqx.Module):
    """A law over tasks. All tasks of a family have the same shapes, so that they can be drawn in a batch."""

    @abstractmethod
    def sample(self, key: Key, length: int) -> Task:
        """One task with `length` observations."""


class ModelFamily(Family):
    """Streams of one model, from unknowns drawn from its prior, or from a given unknown `at`."""

    model: Model
    at: Point | None = None

    def sample(self, key: Key, length: int) -> Task:
        observations, truths = simulate(key, self.model, length, at=self.at)
        return Task(self.model, observations, truths)


def simulate(key: Key, model: Model, length: int, *, at: Point | None = None) -> tuple[Observations, Array]:
    """A stream of `length` observations and the unknown behind each of them.

    The unknown of a state-space model moves once before every observation, the first included.
    """
    prior_key, key = jax.random.split(key)
    start = model.sample_prior(prior_key) if at is None else at

    def advance(x, step_key):
        move_key, observe_key = jax.random.split(step_key)
        if isinstance(model, StateSpaceModel):
            x = model.sample_transition(move_key, x)
        return x, (model.sample_observation(observe_key, x), x)

    return jax.lax.scan(advance, start, jax.random.split(key, length))[1]
