"""The functional core: `init` and `step`, pure functions to jit, scan and vmap."""

from typing import Any

from pfbr.checks import checked_key, checked_num_particles
from pfbr.inference.info import Info
from pfbr.inference.method import Given, Method, State, advance, start
from pfbr.inference.registry import as_method
from pfbr.inference.rows import RowReader
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.typing import Key, Observation


def init(key: Key | int, method: str | Method, model: Model, *, num_particles: int = 256, history: int = 4096) -> State:
    """The state before any observation; a method that is passed itself is taken as it is."""
    checked_methods_of(checked_model(model))
    chosen = method if isinstance(method, Method) else as_method(method, model, history=history)
    example = RowReader(model).example().conditions(model)
    return start(checked_key(key), chosen, model, checked_num_particles(num_particles, dim=int(model.dim)), example)


def step(
    key: Key,
    method: str | Method,
    model: Model,
    state: State,
    observation: Observation,
    *,
    dt: Any = None,
    inputs: Any = None,
) -> tuple[State, Info]:
    """The state after one more observation. Pure: jit, scan and vmap it; values are not checked here.

    A name is looked up at every call: in a loop, pass the method itself (`pfbr.as_method`).
    """
    chosen = method if isinstance(method, Method) else as_method(method, model)
    return advance(key, chosen, model, state, observation, Given(dt, inputs))
