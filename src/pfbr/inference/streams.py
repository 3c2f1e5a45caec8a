"""Streams of any lengths in one compiled scan: their rows one after another, the state begun anew with each stream.

Rows go through in chunks of one size, so that one compilation serves every table; the last chunk is filled up with rows
that are skipped. On several devices each has whole streams of its own. Nothing of a stream depends on the others: its
key is `fold_in(key, s)`, as everywhere.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh

from pfbr.inference.info import Info
from pfbr.inference.method import Given, Method, State, Stream, advance, start, step_key
from pfbr.inference.progress import report
from pfbr.models.base import Model
from pfbr.models.conditions import Conditions
from pfbr.models.needs import all_needs
from pfbr.sharding import mapped, num_devices, on_host
from pfbr.typing import Key

CHUNK = 64  # rows: a call costs less than a millisecond, and the skipped ones next to nothing


class StreamRow(eqx.Module):
    """One row, or many along the first axis."""

    row: Stream
    stream: Any  # its number
    first: Any  # whether a stream begins here
    real: Any  # False: fills the last chunk up


class Said(eqx.Module):
    """What a method said after each row."""

    particles: Any
    info: Info
    parameters: Any


class Shared(eqx.Module):
    """What all streams have in common."""

    key: Key
    method: Method
    model: Model
    num_particles: int = eqx.field(static=True)


def record_streams(
    key: Key,
    method: Method,
    model: Model,
    rows: Stream,
    stream: np.ndarray,
    num_particles: int,
    mesh: Mesh | None = None,
) -> Said:
    """Posteriors after each of N rows, which come stream after stream; `stream` (N,) numbers them.

    With a `mesh`, every device has whole streams, and about as many rows as the others.
    """
    first = np.append(True, stream[1:] != stream[:-1])
    every = StreamRow(jax.tree.map(np.asarray, rows), stream.astype(np.int32), first, np.ones(len(stream), bool))
    queues = _queues(first, num_devices(mesh))
    places = np.stack([_filled_up(queue, max(map(len, queues))) for queue in queues])  # (devices, rows); −1: none
    shared = Shared(key, method, model, num_particles)
    one = jax.tree.map(lambda leaf: leaf[0], every)
    state = jax.tree.map(lambda leaf: np.zeros((len(queues), *leaf.shape), leaf.dtype), _shapes(shared, one))
    found: Any = None
    for begin in range(0, places.shape[1], CHUNK):
        own = places[:, begin : begin + CHUNK]
        chunk = jax.tree.map(lambda leaf, own=own: leaf[own], every)
        chunk = eqx.tree_at(lambda r: (r.first, r.real), chunk, (chunk.first & (own >= 0), own >= 0))
        state, said = mapped(mesh, _chunk, shared, (state, chunk))
        said = on_host(said)
        if found is None:
            found = jax.tree.map(lambda leaf: np.zeros((len(stream), *leaf.shape[2:]), leaf.dtype), said)
        jax.tree.map(lambda room, leaf, own=own: room.__setitem__(own[own >= 0], leaf[own >= 0]), found, said)
        report(int(np.sum(places[:, : begin + CHUNK] >= 0)))
    return found


def _queues(first: np.ndarray, number: int) -> list[np.ndarray]:
    """The rows of each device: whole streams, the longest ones first to who has least."""
    streams = np.split(np.arange(len(first)), np.flatnonzero(first)[1:])
    if number == 1:
        return [np.arange(len(first))]
    queues: list[list[np.ndarray]] = [[] for _ in range(number)]
    lengths = np.zeros(number, int)
    for rows in sorted(streams, key=len, reverse=True):
        least = int(lengths.argmin())
        queues[least].append(rows)
        lengths[least] += len(rows)
    return [np.concatenate([*queue, np.zeros(0, int)]) for queue in queues]


def _filled_up(queue: np.ndarray, longest: int) -> np.ndarray:
    """Places of rows, and −1 up to a whole number of chunks."""
    return np.append(queue, np.full(-(-longest // CHUNK) * CHUNK - len(queue), -1))


def _chunk(shared: Shared, each: tuple[State, StreamRow]) -> tuple[State, Said]:
    """Rows of one device, whose axis of devices is one."""
    state, rows = jax.tree.map(lambda leaf: leaf[0], each)
    after = _through(shared.key, shared.method, shared.model, state, rows, shared.num_particles)
    return jax.tree.map(lambda leaf: leaf[None], after)


def _through(
    key: Key, method: Method, model: Model, state: State, rows: StreamRow, num_particles: int
) -> tuple[State, Said]:
    def one(state, row):
        own_key = jax.random.fold_in(key, row.stream)
        begin = lambda held: _begun(own_key, method, model, row, num_particles)
        state = jax.lax.cond(row.first, begin, lambda held: held, state)

        def go_on(held):
            given = Given(row.row.dt, row.row.inputs, row.row.observed)
            after, info = advance(step_key(own_key, held.stage + 1), method, model, held, row.row.observations, given)
            return after, Said(method.particles(after.own), info, method.parameters(model, after.own))

        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(go_on, state)[1])
        return jax.lax.cond(row.real, go_on, lambda held: (held, blank), state)

    return jax.lax.scan(one, state, rows)


def _begun(key: Key, method: Method, model: Model, row: StreamRow, num_particles: int) -> State:
    """The state before the first row of a stream."""
    words = all_needs(model)
    example = Conditions(
        row.row.dt,
        jnp.zeros(()) if "time" in words else None,
        row.row.inputs if "inputs" in words else None,
        row.row.observed,
    )
    return start(key, method, model, num_particles, example, jnp.shape(row.row.observations))


def _shapes(shared: Shared, row: StreamRow) -> State:
    """A state as shapes; zeros stand there until the first row puts a state in their place."""
    begun = lambda k, r: _begun(k, shared.method, shared.model, r, shared.num_particles)
    return eqx.filter_eval_shape(begun, shared.key, row)
