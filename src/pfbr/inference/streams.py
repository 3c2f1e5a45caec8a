"""Streams of any lengths in one compiled scan: their rows one after another, the state begun anew with each stream.

Rows go through in chunks of one size, so that one compilation serves every table; the last chunk is filled up with rows
that are skipped. Nothing of a stream depends on the others: its key is `fold_in(key, s)`, as everywhere.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.info import Info
from pfbr.inference.method import Given, Method, State, Stream, advance, start, step_key
from pfbr.inference.progress import report
from pfbr.models.base import Model
from pfbr.models.conditions import Conditions
from pfbr.models.needs import all_needs
from pfbr.typing import Key

CHUNK = 64  # rows: a call costs less than a millisecond, and the skipped ones next to nothing


class _Row(eqx.Module):
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


def record_streams(
    key: Key, method: Method, model: Model, rows: Stream, stream: np.ndarray, num_particles: int
) -> Said:
    """Posteriors after each of N rows, which come stream after stream; `stream` (N,) numbers them."""
    length = len(stream)
    first = np.append(True, stream[1:] != stream[:-1])
    every = _Row(jax.tree.map(np.asarray, rows), stream.astype(np.int32), first, np.ones(length, bool))
    missing = -length % CHUNK
    padded = jax.tree.map(lambda leaf: np.concatenate([leaf, np.repeat(leaf[-1:], missing, axis=0)]), every)
    real = np.arange(length + missing) < length
    padded = eqx.tree_at(lambda r: (r.first, r.real), padded, (padded.first & real, real))
    state = _nothing(key, method, model, jax.tree.map(lambda leaf: leaf[0], padded), num_particles)
    parts = []
    for begin in range(0, length, CHUNK):
        chunk = jax.tree.map(lambda leaf, begin=begin: leaf[begin : begin + CHUNK], padded)
        state, said = _chunk(key, method, model, state, chunk, num_particles)
        parts.append(jax.tree.map(np.asarray, said))
        report(min(begin + CHUNK, length))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:length], *parts)


@eqx.filter_jit
def _chunk(key: Key, method: Method, model: Model, state: State, rows: _Row, num_particles: int) -> tuple[State, Said]:
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


def _begun(key: Key, method: Method, model: Model, row: _Row, num_particles: int) -> State:
    """The state before the first row of a stream."""
    words = all_needs(model)
    example = Conditions(
        row.row.dt,
        jnp.zeros(()) if "time" in words else None,
        row.row.inputs if "inputs" in words else None,
        row.row.observed,
    )
    return start(key, method, model, num_particles, example, jnp.shape(row.row.observations))


def _nothing(key: Key, method: Method, model: Model, row: _Row, num_particles: int) -> State:
    """A state of the right form; the first row puts another in its place."""
    shapes = eqx.filter_eval_shape(lambda k, r: _begun(k, method, model, r, num_particles), key, row)
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
