"""Where the states of many streams live: on the host, a row each, in as little room as their pasts need.

Methods that keep rows keep them in a buffer of fixed size. Streams that are young live in a store with small buffers
and move to the next one when theirs is full: 128 rows, then twice as many, up to `history`. Room that was never written
to costs nothing.
"""

import dataclasses
import itertools
from typing import Any

import jax
import numpy as np

from pfbr.errors import InputError
from pfbr.inference.method import Method, State
from pfbr.inference.rows import Row
from pfbr.inference.saved_parts import state_skeleton
from pfbr.models.base import Model

FIRST_ROWS = 128  # the smallest buffer; the adaptive method rounds up to as many


class Store:
    """States of streams whose method keeps up to `rows` rows; all leaves lead with the slot."""

    def __init__(self, method: Method, skeleton: State, rows: int, capacity: int):
        self.method, self.skeleton, self.rows = method, skeleton, rows
        try:  # room that nobody has written to costs nothing; more than the machine can even name is refused
            self.leaves = [np.zeros((capacity, *leaf.shape), leaf.dtype) for leaf in jax.tree.leaves(skeleton)]
        except (MemoryError, ValueError):
            raise InputError(
                f"{capacity} streams with such states are more than this machine can hold: a smaller `capacity`, "
                "`num_particles` or `history`."
            ) from None
        self._free: list[int] = []
        self._next = 0

    def take(self, number: int) -> np.ndarray:
        """So many free slots; used ones first, so that few pages are ever touched."""
        again = [self._free.pop() for _ in range(min(number, len(self._free)))]
        fresh = range(self._next, self._next + number - len(again))
        self._next += len(fresh)
        return np.fromiter(itertools.chain(again, fresh), np.int64, number)

    def free(self, slots: np.ndarray) -> None:
        self._free.extend(int(slot) for slot in slots)

    def read(self, slots: np.ndarray) -> State:
        return jax.tree.unflatten(jax.tree.structure(self.skeleton), [leaf[slots] for leaf in self.leaves])

    def write(self, slots: np.ndarray, states: State) -> None:
        for leaf, new in zip(self.leaves, jax.tree.leaves(states), strict=True):
            leaf[slots] = new

    @property
    def bytes_per_stream(self) -> int:
        return sum(leaf[0].nbytes for leaf in self.leaves)


def make_stores(method: Method, model: Model, num_particles: int, example: Row, capacity: int) -> list[Store]:
    """One for each size of past, the smallest first; a single one for methods that keep no rows."""
    most = kept_rows(method)
    if most is None:
        return [Store(method, state_skeleton(method, model, num_particles, example), 0, capacity)]
    sizes = [most]
    while sizes[0] > FIRST_ROWS:
        sizes.insert(0, -(-sizes[0] // 2))
    stores: list[Store] = []
    for rows in sizes:
        own = with_rows(method, rows)
        skeleton = state_skeleton(own, model, num_particles, example)
        if stores and _shapes(skeleton) == _shapes(stores[-1].skeleton):
            stores[-1] = Store(own, skeleton, rows, capacity)  # the same buffers hold as many
        else:
            stores.append(Store(own, skeleton, rows, capacity))
    return stores


def widened(states: State, to: Store) -> State:
    """States with room for more rows: zeros behind what they hold."""

    def pad(leaf: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        wide = np.zeros((len(leaf), *shape), leaf.dtype)
        wide[(slice(None), *(slice(n) for n in leaf.shape[1:]))] = leaf
        return wide

    shapes = _shapes(to.skeleton)
    leaves = [pad(leaf, shape) for leaf, shape in zip(jax.tree.leaves(states), shapes, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(to.skeleton), leaves)


def kept_rows(method: Method) -> int | None:
    """How many rows a method keeps at most; None where it keeps none."""
    for field in ("history", "capacity"):
        rows = getattr(method, field, None)
        if isinstance(rows, int) and rows > 0:
            return rows
    return None


def ends_when_full(method: Method) -> bool:
    """Whether a method cannot go on once its rows are full: rivals with a `capacity`."""
    return isinstance(getattr(method, "capacity", None), int)


def with_rows(method: Method, rows: int) -> Method:
    field = "history" if hasattr(method, "history") else "capacity"
    changed: Any = {field: rows}
    return dataclasses.replace(method, **changed)


def check_capacity(named: int, capacity: int) -> None:
    if named > capacity:
        raise InputError(
            f"this panel has room for {capacity} streams, and {named} would be in it: make it with a larger "
            "`capacity`, or `remove` streams that have ended."
        )


def _shapes(skeleton: State) -> list[tuple[int, ...]]:
    return [leaf.shape for leaf in jax.tree.leaves(skeleton)]
