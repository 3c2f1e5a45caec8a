"""A row as the adaptive method keeps it: the observation and what came with it; and its likelihood."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import Conditions, bind, conditions_of, unbound
from pfbr.typing import Observation, Point, Scalar


class Row(eqx.Module):
    """One observation without NaN, under its conditions; the mask is always there, so that all rows look alike."""

    observation: Observation
    conditions: Conditions


def row_of(model: Model, observation: Observation) -> Row:
    """The row that a bound model and an observation make."""
    given = conditions_of(model)
    shape = jnp.shape(observation)
    observed = jnp.ones(shape, bool) if given.observed is None else jnp.asarray(given.observed)
    dtype = jnp.result_type(float)
    real = lambda leaf: jnp.asarray(leaf, dtype if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) else None)
    # so is the time, where the unknown moves: an ordinary step where nobody said how long it was
    dt = jnp.ones(()) if given.dt is None and isinstance(model, StateSpaceModel) else given.dt
    cast = jax.tree.map(real, (dt, given.time, given.inputs))
    return Row(jnp.asarray(observation, dtype), Conditions(*cast, observed, given.params))


def same_rows(kept: Row, row: Row) -> Array:
    """Which of many kept rows have this one's observation, gaps and inputs; whenever they came."""
    first = lambda r: (r.observation, r.conditions.inputs, r.conditions.observed)

    def equal(held: Array, one: Array) -> Array:
        return jnp.all(jnp.reshape(held == one, (len(held), -1)), axis=1)

    return jax.tree.reduce(jnp.logical_and, jax.tree.map(equal, first(kept), first(row)))


class RowLikelihood(eqx.Module):
    """log p(row | x), the row under its own conditions."""

    model: Model

    def __call__(self, x: Point, row: Row) -> Scalar:
        bound = bind(self.model, row.conditions, shape=row.observation.shape)
        return bound.log_likelihood(x, row.observation)


def row_likelihood(model: Model) -> RowLikelihood:
    return RowLikelihood(unbound(model))
