"""The observations so far, in a buffer of fixed size: for rivals that look back, which the operator never does."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.errors import InputError
from pfbr.models.base import Model, observation_shape
from pfbr.typing import Key, Observation, Observations, Point, Scalar


class History(eqx.Module):
    """`stored` holds the first `count` observations; the rest of it is empty."""

    stored: Observations
    count: Int[Array, ""]

    @property
    def capacity(self) -> int:
        return self.stored.shape[0]

    def append(self, observation: Observation) -> "History":
        """One more observation; an error at run time when the buffer is full."""
        count = eqx.error_if(
            self.count,
            self.count >= self.capacity,
            f"this method stores its observations and has room for {self.capacity}: make it with a larger `capacity`.",
        )
        return History(self.stored.at[count].set(observation), count + 1)

    def without(self, observation: Observation) -> "History":
        """The same but for the first observation that equals this one."""
        places = jnp.arange(self.capacity)
        first = jnp.argmax(jnp.all(jnp.reshape(self.stored == observation, (self.capacity, -1)), axis=1))
        return History(self.stored[jnp.minimum(places + (places >= first), self.capacity - 1)], self.count - 1)

    def log_likelihood(self, model: Model, x: Point) -> Scalar:
        """Σ log p(o_i | x) over the observations so far."""

        def include(i, total):
            return total + model.log_likelihood(x, self.stored[i])

        return jax.lax.fori_loop(0, self.count, include, jnp.zeros((), x.dtype))

    def score(self, model: Model, x: Point) -> Point:
        """The gradient of `log_likelihood`; summed by hand, since a loop of unknown length has no reverse mode."""

        def include(i, total):
            return total + jax.grad(model.log_likelihood)(x, self.stored[i])

        return jax.lax.fori_loop(0, self.count, include, jnp.zeros_like(x))

    def batch(self, key: Key, size: int) -> tuple[Observations, Scalar]:
        """`size` stored observations drawn with replacement, and the factor that makes their sum unbiased."""
        which = jax.random.randint(key, (size,), 0, jnp.maximum(self.count, 1))
        return self.stored[which], self.count / size


def empty_history(model: Model, capacity: int) -> History:
    """A buffer for a model that can tell the shape of its observations."""
    return History(jnp.zeros((capacity, *observation_shape(model))), jnp.zeros((), jnp.int32))  # type: ignore[misc]


def needs_shape(model: Model) -> str | None:
    """The reason to refuse a model whose observations have no known shape, or None."""
    if observation_shape(model) is not None:
        return None
    return "it stores observations, and only `sample_observation(key, x)` can tell their shape: add that method."


def check_capacity(capacity: int) -> int:
    """The capacity, or an error."""
    if capacity < 1:
        raise InputError(f"`capacity` is the largest number of observations to store, at least 1; got {capacity}.")
    return capacity
