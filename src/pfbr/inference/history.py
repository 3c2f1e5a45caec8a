"""The rows so far, in a buffer of fixed size: for methods that look back."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.errors import InputError
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import Conditions, bind, conditions_of, observation_shape, unbound
from pfbr.typing import Key, Observation, Point, Scalar


class Rows(eqx.Module):
    """Observations and what came with each; the leading axis runs over rows."""

    observations: Float[Array, "..."]  # one row, or many along the leading axis
    conditions: Conditions

    def log_likelihood(self, model: Model, x: Point, index: Array) -> Scalar:
        """log p(o_i | x) of one row, under its own conditions."""
        observation, conditions = jax.tree.map(lambda leaf: leaf[index], (self.observations, self.conditions))
        return bind(unbound(model), conditions, shape=observation.shape).log_likelihood(x, observation)


class History(eqx.Module):
    """`stored` holds the first `count` rows; the rest of it is empty."""

    stored: Rows
    count: Int[Array, ""]

    @property
    def capacity(self) -> int:
        return self.stored.observations.shape[0]

    def append(self, model: Model, observation: Observation) -> "History":
        """One more row, with what the model is bound to; an error at run time when the buffer is full."""
        count = eqx.error_if(
            self.count,
            self.count >= self.capacity,
            f"this method stores its observations and has room for {self.capacity}: give it a larger `history`.",
        )
        row = Rows(jnp.asarray(observation), _complete(model, jnp.shape(observation)))
        stored = jax.tree.map(lambda buffer, one: buffer.at[count].set(one), self.stored, row)
        return History(stored, count + 1)

    def without(self, observation: Observation) -> "History":
        """The same but for the first row whose observation equals this one."""
        places = jnp.arange(self.capacity)
        first = jnp.argmax(self._equal(observation))
        later = jnp.minimum(places + (places >= first), self.capacity - 1)
        return History(jax.tree.map(lambda buffer: buffer[later], self.stored), self.count - 1)

    def holds(self, observation: Observation) -> Array:
        """Whether some row has this observation."""
        return jnp.any(self._equal(observation))

    def _equal(self, observation: Observation) -> Array:
        same = jnp.all(jnp.reshape(self.stored.observations == observation, (self.capacity, -1)), axis=1)
        return same & (jnp.arange(self.capacity) < self.count)

    def log_likelihood(self, model: Model, x: Point) -> Scalar:
        """Σ log p(o_i | x) over the rows so far."""

        def include(i, total):
            return total + self.stored.log_likelihood(model, x, i)

        return jax.lax.fori_loop(0, self.count, include, jnp.zeros((), x.dtype))

    def score(self, model: Model, x: Point) -> Point:
        """The gradient of `log_likelihood`; summed by hand, since a loop of unknown length has no reverse mode."""

        def include(i, total):
            return total + jax.grad(lambda at: self.stored.log_likelihood(model, at, i))(x)

        return jax.lax.fori_loop(0, self.count, include, jnp.zeros_like(x))

    def batch(self, key: Key, size: int) -> tuple[Rows, Scalar]:
        """`size` stored rows drawn with replacement, and the factor that makes their sum unbiased."""
        which = jax.random.randint(key, (size,), 0, jnp.maximum(self.count, 1))
        return jax.tree.map(lambda buffer: buffer[which], self.stored), self.count / size


def empty_history(model: Model, capacity: int) -> History:
    """A buffer for rows such as the one that the model is bound to."""
    shape = observation_shape(model)
    if shape is None:
        raise InputError(
            f"this method stores observations, and {type(unbound(model)).__name__} does not tell their shape before "
            "one has come: add `sample_observation(key, x)`, or update a session first."
        )
    one = Rows(jnp.zeros(shape), _complete(model, shape))
    stored = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.result_type(leaf)), one)
    return History(stored, jnp.zeros((), jnp.int32))


def _complete(model: Model, shape: tuple[int, ...]) -> Conditions:
    """With a mask, and a time where the unknown moves, so that rows with and without them fit into one buffer."""
    given = conditions_of(model)
    observed = jnp.ones(shape, bool) if given.observed is None else jnp.asarray(given.observed)
    dt = jnp.ones(()) if given.dt is None and isinstance(model, StateSpaceModel) else given.dt
    return Conditions(dt, given.time, given.inputs, observed, given.params)


def check_capacity(capacity: int) -> int:
    """The capacity, or an error."""
    if capacity < 1:
        raise InputError(f"`capacity` is the largest number of observations to store, at least 1; got {capacity}.")
    return capacity
