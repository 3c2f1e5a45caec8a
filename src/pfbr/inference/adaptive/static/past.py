"""The rows seen so far, in a buffer of fixed size with a traced count: nothing recompiles as it fills."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

BLOCK = 128  # rows that go at a time when the past is full
SUMMED = 32  # rows summed at a time: a young stream has few, and those that are none cost as much


class Past(eqx.Module):
    rows: Any  # a pytree, each leaf (capacity, ...)
    count: Array  # int32, rows held

    @property
    def capacity(self) -> int:
        return jax.tree.leaves(self.rows)[0].shape[0]

    def append(self, row: Any) -> "Past":
        """The row is written behind the others; the caller has made room."""
        if not self.capacity:
            return Past(self.rows, self.count)
        write = lambda held, new: jax.lax.dynamic_update_index_in_dim(held, new.astype(held.dtype), self.count, 0)
        return Past(jax.tree.map(write, self.rows, row), self.count + 1)

    def row(self, index: Array) -> Any:
        return jax.tree.map(lambda held: held[index], self.rows)

    def without(self, index: Array) -> "Past":
        """The same but for the row at this place."""
        places = jnp.arange(self.capacity)
        later = jnp.minimum(places + (places >= index), self.capacity - 1)
        return Past(jax.tree.map(lambda held: held[later], self.rows), self.count - 1)

    def drop(self, number: int) -> "Past":
        """Without the oldest rows."""
        return Past(jax.tree.map(lambda held: jnp.roll(held, -number, axis=0), self.rows), self.count - number)

    def block(self, index: Array, stand_in: Any) -> tuple[Any, Array]:
        """Rows of one block and which of them are real. A valid row stands in for the others: 0 · NaN is NaN in a
        gradient, whatever mask is laid over the sum."""
        return take(self.rows, index * SUMMED, SUMMED, self.count, stand_in)

    @property
    def num_blocks(self) -> Array:
        return (self.count + SUMMED - 1) // SUMMED


def take(rows: Any, start: Array, size: int, count: Array, stand_in: Any) -> tuple[Any, Array]:
    real = start + jnp.arange(size) < count

    def pick(held, new):
        cut = jax.lax.dynamic_slice_in_dim(held, start, size)
        return jnp.where(real.reshape((size,) + (1,) * (cut.ndim - 1)), cut, new.astype(cut.dtype))

    return jax.tree.map(pick, rows, stand_in), real


def empty_past(row: Any, capacity: int) -> Past:
    """Room for `capacity` rows, rounded up to whole blocks; 0 keeps nothing."""
    capacity = -(-capacity // BLOCK) * BLOCK
    rows = jax.tree.map(lambda leaf: jnp.zeros((capacity, *jnp.shape(leaf)), jnp.asarray(leaf).dtype), row)
    return Past(rows, jnp.zeros((), jnp.int32))
