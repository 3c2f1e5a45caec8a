"""The step of one stream under `vmap`: all are weighed together, and only those that need it are moved.

A branch under `vmap` runs both ways, so the decision is taken outside: what weighing is not enough for is gathered into
a bucket of its own. Buckets are padded to a power of two, so that few sizes are ever compiled. Keys: the stream that
was named as number s of a panel has the key `fold_in(key, s)`, step m of it `fold_in(·, m)`; who else reports does not
matter.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.info import Info
from pfbr.inference.method import Method, State, advance, start, step_key, try_weighing
from pfbr.inference.rows import Row
from pfbr.models.base import Model
from pfbr.particles.particles import Particles
from pfbr.typing import Key

LARGEST = 1024  # streams in one compiled call: their particles stay in the cache
SMALLEST = 8


class Stepped(eqx.Module):
    """Streams after a report each: states, particles, parameters, what was said, and whether weighing was enough."""

    states: State
    particles: Particles
    parameters: Any
    info: Info
    enough: Array


def stream_key(key: Key, number: Array) -> Key:
    return jax.random.fold_in(key, number)


@eqx.filter_jit
def begin(key: Key, numbers: Array, method: Method, model: Model, num_particles: int, example: Row) -> State:
    """The states of new streams, by the numbers in which they were named."""
    conditions, shape = example.conditions(model), example.observation.shape
    one = lambda number: start(stream_key(key, number), method, model, num_particles, conditions, shape)
    return jax.vmap(one)(numbers)


@eqx.filter_jit
def weigh(key: Key, numbers: Array, stages: Array, method: Method, model: Model, states: State, rows: Row) -> Stepped:
    """Every stream by weighing alone."""

    def one(number, stage, state, row):
        own = step_key(stream_key(key, number), stage + 1)
        tried = try_weighing(own, method, model, state, row.observation, row.given)
        assert tried is not None  # callers ask `can_weigh` first
        return _stepped(method, model, *tried)

    return jax.vmap(one)(numbers, stages, states, rows)


@eqx.filter_jit
def move(key: Key, numbers: Array, stages: Array, method: Method, model: Model, states: State, rows: Row) -> Stepped:
    """Every stream by whatever it takes."""

    def one(number, stage, state, row):
        own = step_key(stream_key(key, number), stage + 1)
        return _stepped(
            method, model, *advance(own, method, model, state, row.observation, row.given), jnp.asarray(True)
        )

    return jax.vmap(one)(numbers, stages, states, rows)


def can_weigh(key: Key, method: Method, model: Model, state: State, row: Row) -> bool:
    """Whether the method has a cheap first try for this model; found by tracing it."""
    if type(method).weigh is Method.weigh:
        return False
    found: list[bool] = []

    def ask(state, row):
        found.append(try_weighing(key, method, model, state, row.observation, row.given) is not None)

    eqx.filter_eval_shape(ask, state, row)
    return found[0]


def buckets(number: int) -> list[tuple[slice, int]]:
    """Parts of so many streams, each with the size that it is padded to."""
    parts = []
    for first in range(0, number, LARGEST):
        size = min(LARGEST, number - first)
        parts.append((slice(first, first + size), max(SMALLEST, 1 << (size - 1).bit_length())))
    return parts


def padded(tree: Any, size: int) -> Any:
    """The leading axis of every array filled up with copies of its first entry."""

    def pad(leaf: np.ndarray) -> np.ndarray:
        missing = size - len(leaf)
        return leaf if missing == 0 else np.concatenate([leaf, np.broadcast_to(leaf[:1], (missing, *leaf.shape[1:]))])

    return jax.tree.map(pad, tree)


def _stepped(method: Method, model: Model, state: State, info: Info, enough: Array) -> Stepped:
    return Stepped(state, method.particles(state.own), method.parameters(model, state.own), info, enough)
