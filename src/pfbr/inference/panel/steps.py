"""The step of many streams: all are weighed together, and only those that need it are moved.

A branch under `vmap` runs both ways and a loop until the last stream is done, so the decision is taken outside: what
weighing is not enough for is gathered into a bucket of its own, and moved one after the other in one compiled call.
Steps without many branches are taken together. Buckets are padded to a power of two, so that few sizes are ever
compiled. Keys: the stream that was named as number s of a panel has the key `fold_in(key, s)`, step m of it
`fold_in(·, m)`; who else reports does not matter.
"""

from typing import Any

import equinox as eqx
import jax
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
EACH = 64  # streams in a call that takes them one after the other: padding costs it nothing, so one size is enough


class Stepped(eqx.Module):
    """Streams after a report each: states, particles, parameters, what was said, and whether weighing was enough."""

    states: State
    particles: Particles
    parameters: Any
    info: Info
    enough: Array


def stream_key(key: Key, number: Array) -> Key:
    return jax.random.fold_in(key, number)


class Beginning(eqx.Module):
    """What the first states of streams are made of."""

    key: Key
    method: Method
    model: Model
    example: Row
    num_particles: int = eqx.field(static=True)


class Stepping(eqx.Module):
    """What the steps of all streams share."""

    key: Key
    method: Method
    model: Model


class Standing(eqx.Module):
    """Streams and a report of each: their numbers, how many reports they have absorbed, their states; and whether each
    is one at all or fills a bucket up."""

    numbers: Any
    stages: Any
    states: State
    rows: Row
    real: Any


def begin(shared: Beginning, numbers: Any) -> State:
    """The states of new streams, by the numbers in which they were named."""
    conditions, shape = shared.example.conditions(shared.model), shared.example.observation.shape
    method, model = shared.method, shared.model
    one = lambda number: start(stream_key(shared.key, number), method, model, shared.num_particles, conditions, shape)
    return jax.vmap(one)(numbers)


def weigh(shared: Stepping, streams: Standing) -> Stepped:
    """Every stream by weighing alone."""

    def one(stream):
        own = step_key(stream_key(shared.key, stream.numbers), stream.stages + 1)
        row = stream.rows
        tried = try_weighing(own, shared.method, shared.model, stream.states, row.observation, row.given)
        assert tried is not None  # callers ask `can_weigh` first
        return _stepped(shared.method, shared.model, *tried)

    return jax.vmap(one)(streams)


def move(shared: Stepping, streams: Standing) -> Stepped:
    """Every stream by whatever it takes, all at once."""
    return jax.vmap(lambda stream: _moved(shared, stream))(streams)


def move_each(shared: Stepping, streams: Standing) -> Stepped:
    """Every real stream by whatever it takes, one after the other: each goes its own way and takes its own time."""
    one = lambda stream: _moved(shared, stream)
    shapes = eqx.filter_eval_shape(one, jax.tree.map(lambda leaf: leaf[0], streams))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.map(lambda stream: jax.lax.cond(stream.real, one, lambda _: nothing, stream), streams)


def mostly_branches(key: Key, method: Method, model: Model, state: State, row: Row) -> bool:
    """Whether more of a step stands in branches and loops than outside: under `vmap` all of them would run, for as long
    as the slowest stream needs. Found by tracing it."""
    zero = jnp.zeros((), jnp.int32)
    concrete = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)
    arrays, rest = eqx.partition((concrete, jax.tree.map(jnp.asarray, row)), eqx.is_array)
    stream = lambda a: Standing(zero, zero, *eqx.combine(a, rest), jnp.asarray(True))
    traced = jax.make_jaxpr(lambda a: eqx.filter(_moved(Stepping(key, method, model), stream(a)), eqx.is_array))
    inside, outside = _equations(traced(arrays).jaxpr, False)
    return inside > outside


def _equations(jaxpr: Any, in_branch: bool) -> tuple[int, int]:
    """How many equations stand in branches and loops, and how many outside."""
    inside = outside = 0
    for equation in jaxpr.eqns:
        branches = in_branch or equation.primitive.name in ("cond", "while")
        inner = [p for value in equation.params.values() for p in _jaxprs(value)]
        counts = [_equations(one, branches) for one in inner]
        inside += sum(c[0] for c in counts) + (in_branch and not inner)
        outside += sum(c[1] for c in counts) + (not in_branch and not inner)
    return inside, outside


def _jaxprs(value: Any) -> list[Any]:
    """The jaxprs among the parameters of an equation."""
    several = value if isinstance(value, tuple | list) else (value,)
    found = [getattr(one, "jaxpr", one) for one in several]
    return [one for one in found if hasattr(one, "eqns")]


def _moved(shared: Stepping, stream: Standing) -> Stepped:
    own = step_key(stream_key(shared.key, stream.numbers), stream.stages + 1)
    row = stream.rows
    after, info = advance(own, shared.method, shared.model, stream.states, row.observation, row.given)
    return _stepped(shared.method, shared.model, after, info, jnp.asarray(True))


def can_weigh(key: Key, method: Method, model: Model, state: State, row: Row) -> bool:
    """Whether the method has a cheap first try for this model; found by tracing it."""
    if type(method).weigh is Method.weigh:
        return False
    found: list[bool] = []

    def ask(state, row):
        found.append(try_weighing(key, method, model, state, row.observation, row.given) is not None)

    eqx.filter_eval_shape(ask, state, row)
    return found[0]


def buckets(number: int, *, one_by_one: bool = False, devices: int = 1) -> list[tuple[slice, int]]:
    """Parts of so many streams, each with the size that it is padded to: on each of several devices what a single one
    would have, so that a stream is computed in the same shapes."""
    most = (EACH if one_by_one else LARGEST) * devices
    parts = []
    for first in range(0, number, most):
        size = min(most, number - first)
        own = -(-size // devices)
        room = EACH if one_by_one else max(SMALLEST, 1 << (own - 1).bit_length())
        parts.append((slice(first, first + size), room * devices))
    return parts


def _stepped(method: Method, model: Model, state: State, info: Info, enough: Array) -> Stepped:
    return Stepped(state, method.particles(state.own), method.parameters(model, state.own), info, enough)
