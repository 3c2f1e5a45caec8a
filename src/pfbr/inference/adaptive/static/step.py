"""One row for static unknowns, taken in or taken back: weigh while the ESS is enough, else rejuvenate."""

from typing import Any

import equinox as eqx
import jax
from jax import Array

from pfbr.inference.adaptive.static.forgetting import forget_oldest
from pfbr.inference.adaptive.static.rejuvenation import rejuvenate
from pfbr.inference.adaptive.static.state import StaticInfo, StaticSettings, StaticState
from pfbr.inference.adaptive.static.target import Target
from pfbr.inference.adaptive.static.weighing import weigh


def make_room(target: Target, state: StaticState) -> StaticState:
    """Where the buffer is full the oldest rows go into the surrogate. Before a row, apart from weighing: it is rare."""
    if not state.past.capacity:
        return state
    forget = lambda: forget_oldest(target, state.past, state.surrogate, state.points, state.log_weights)
    full = state.past.count >= state.past.capacity
    past, surrogate = jax.lax.cond(full, forget, lambda: (state.past, state.surrogate))
    return eqx.tree_at(lambda s: (s.past, s.surrogate), state, (past, surrogate))


def step(
    key: Array, target: Target, state: StaticState, row: Any, settings: StaticSettings = StaticSettings()
) -> tuple[StaticState, StaticInfo]:
    """One row. Pure: jit, scan and vmap as you like (under vmap both branches run)."""
    state = make_room(target, state)
    after, info, enough = weigh(target, state, row, settings)
    return jax.lax.cond(enough, lambda: (after, info), lambda: rejuvenate(key, target, state, row, settings))


def weigh_back(
    target: Target, state: StaticState, index: Array, settings: StaticSettings = StaticSettings()
) -> tuple[StaticState, StaticInfo, Array]:
    """A kept row taken back by weights alone, or in closed form; and whether that was enough."""
    after, info, enough = weigh(target.inverse(), state, state.past.row(index), settings)
    return _without(state, after, index), info, enough


def retract(
    key: Array, target: Target, state: StaticState, index: Array, settings: StaticSettings = StaticSettings()
) -> tuple[StaticState, StaticInfo]:
    """The row at this place of the past taken back: a step with its inverse likelihood, from rows that still hold it
    to rows that do not."""
    after, info, enough = weigh_back(target, state, index, settings)

    rest = lambda: move_back(key, target, state, index, settings)
    return jax.lax.cond(enough, lambda: (after, info), rest)


def move_back(
    key: Array, target: Target, state: StaticState, index: Array, settings: StaticSettings = StaticSettings()
) -> tuple[StaticState, StaticInfo]:
    """The same by moves against the remaining rows."""
    moved, info = rejuvenate(key, target.inverse(), state, state.past.row(index), settings)
    return _without(state, moved, index), info


def _without(before: StaticState, after: StaticState, index: Array) -> StaticState:
    return eqx.tree_at(lambda s: (s.past, s.steps), after, (before.past.without(index), before.steps - 1))
