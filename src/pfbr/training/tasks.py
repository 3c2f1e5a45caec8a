"""Inference problems to learn from: a model, a stream, and the law from which training draws them."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.flow.likelihood import Likelihood
from pfbr.inference.method import Stream
from pfbr.models.base import Model
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.models.simulate import simulate
from pfbr.typing import Key, Observation, Observations, Point


class TaskRow(eqx.Module):
    """One observation of a task with what came with it, or many along a leading axis; `number` counts from 1."""

    number: Int[Array, "..."]
    observation: Observation
    dt: Array | None = None
    time: Array | None = None
    inputs: Any = None

    def bound(self, model: Model) -> Model:
        """The model under the conditions of this row."""
        words = all_needs(model)
        return bind(model, Conditions(self.dt, self.time if "time" in words else None, self.inputs))

    def likelihood(self, model: Model) -> tuple[Model, Likelihood]:
        """The model under the conditions of this row, and the row as a likelihood."""
        here = self.bound(model)
        return here, Likelihood(here, self.observation)


class Task(eqx.Module):
    """A model together with a stream drawn from it. `truths` are the unknowns behind each observation."""

    model: Model
    observations: Observations
    truths: Float[Array, "t d"]
    dt: Float[Array, " t"] | None = None
    inputs: Any = None

    @property
    def rows(self) -> TaskRow:
        """All rows, one after the other along the leading axis."""
        numbers = jnp.arange(1, self.observations.shape[0] + 1)
        return TaskRow(
            numbers, self.observations, self.dt, None if self.dt is None else jnp.cumsum(self.dt), self.inputs
        )

    @property
    def first_model(self) -> Model:
        """The model under the conditions of the first row."""
        return jax.tree.map(lambda leaf: leaf[0], self.rows).bound(self.model)

    @property
    def stream(self) -> Stream:
        """The stream as every method takes it."""
        return Stream(self.observations, self.dt, self.inputs)


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
        drawn = simulate(key, self.model, length, at=self.at)
        return Task(self.model, drawn.observations, drawn.truths, drawn.dt, drawn.inputs)
