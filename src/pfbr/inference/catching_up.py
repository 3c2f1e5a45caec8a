"""From a recorded stream to a live one: where it stands, and its last reports as a session keeps them."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.clock import Clock, moments_since
from pfbr.inference.info import Info
from pfbr.inference.method import Recorded, State, Stream
from pfbr.inference.replay import Kept, Position, Replayed, Report
from pfbr.inference.rows import Row


def row_at(stream: Stream, index: int) -> Row:
    """One row of a stream, as a session reads it."""
    parts = (stream.observations, stream.observed, stream.dt, stream.inputs)
    return Row(*jax.tree.map(lambda leaf: np.asarray(leaf[index]), parts))


def times_of(clock: Clock, times: Any, length: int) -> np.ndarray:
    """When each of `length` reports came, elapsed since the clock's start."""
    return clock.now + np.arange(1.0, length + 1) if times is None else moments_since(clock, np.asarray(times))


def caught_up(recorded: Recorded, stream: Stream, at: np.ndarray, timed: bool, begin: Position) -> Replayed:
    """Where a stream that went on from `begin` stands, and as many of its last reports as states were kept."""
    length, info = len(at), with_evidence(recorded.info, begin.log_evidence)
    none = np.full(length, begin.log_evidence)
    evidence = np.append(begin.log_evidence, none if info.log_evidence is None else info.log_evidence)
    nows = np.append(begin.now, at)
    kept: list[Kept] = []
    if recorded.kept is not None:
        num = jax.tree.leaves(recorded.kept)[0].shape[0]
        last = range(length - num, length)
        for i, state in zip(last, _unstacked(recorded.kept, tuple(i % num for i in last)), strict=True):
            before = Position(state, begin.stage + i, float(nows[i]), float(evidence[i]))
            kept.append(Kept(before, Report(row_at(stream, i).after(None), float(at[i]), timed)))
    end = Position(recorded.last, begin.stage + length, float(nows[-1]), float(evidence[-1]))
    return Replayed(kept, end, info)


def with_evidence(info: Info, before: float) -> Info:
    """The log evidence summed again in float64, which a long stream needs."""
    if info.log_predictive is None:
        return info
    total = before + np.cumsum(np.asarray(info.log_predictive, dtype=np.float64), axis=-1)
    return eqx.tree_at(lambda i: i.log_evidence, info, total, is_leaf=lambda leaf: leaf is None)


def with_room(replayed: Replayed, like: State) -> Replayed:
    """The same with buffers as long as those of `like`: a recorded stream has room for its own rows only."""
    states = [one.before.state for one in replayed.kept]
    *kept, end = _grown([*states, replayed.end.state], like)
    moved = [Kept(_at(one.before, state), one.report) for one, state in zip(replayed.kept, kept, strict=True)]
    return Replayed(moved, _at(replayed.end, end), replayed.info)


def _at(position: Position, state: State) -> Position:
    return Position(state, position.stage, position.now, position.log_evidence)


@eqx.filter_jit
def _unstacked(states: State, places: tuple[int, ...]) -> list[State]:
    return [jax.tree.map(lambda leaf, i=place: leaf[i], states) for place in places]


@eqx.filter_jit
def _grown(states: list[State], like: State) -> list[State]:
    def one(held, wanted):
        if held.shape == wanted.shape:
            return held
        if held.ndim == 0 or held.shape[1:] != wanted.shape[1:] or held.shape[0] > wanted.shape[0]:
            raise InputError("this method's state cannot go on from a recorded stream: update a session row by row.")
        return jnp.concatenate([held, jnp.zeros((wanted.shape[0] - held.shape[0], *held.shape[1:]), held.dtype)])

    return [jax.tree.map(one, state, like) for state in states]
