"""One step of a live stream, compiled: the cheap try first, the whole step where that is not enough."""

from typing import Any

import equinox as eqx
import numpy as np

from pfbr.inference.info import Info
from pfbr.inference.method import Method, State, advance, start, step_key, try_weighing
from pfbr.inference.refusal import refuse_without_posterior
from pfbr.inference.rows import Row
from pfbr.models.base import Model

start_compiled = eqx.filter_jit(start)  # op by op, the first particles would take longer to compile


@eqx.filter_jit
def _step(key, number, method: Method, model: Model, state: State, row: Row):
    """One step with a key that depends on its number; derived inside, where it costs nothing."""
    return advance(step_key(key, number), method, model, state, row.observation, row.given)


@eqx.filter_jit
def _weigh(key, number, method: Method, model: Model, state: State, row: Row):
    """The cheap first try of the same step, compiled apart: it answers while the rest need not exist yet."""
    return try_weighing(step_key(key, number), method, model, state, row.observation, row.given)


def stepped(
    key: Any, number: int, method: Method, model: Model, state: State, row: Row, what: str
) -> tuple[State, Info]:
    """The state after one more row, whose step has this number; `what` names it where it leaves no posterior."""
    arguments = (key, np.asarray(number, np.int32), method, model, state, row)
    tried = _weigh(*arguments) if type(method).weigh is not Method.weigh else None
    after, info = tried[:2] if tried is not None and bool(tried[2]) else _step(*arguments)
    refuse_without_posterior(method.particles(after.own), info, lambda index: what)
    return after, info
