"""What comes next in each of many streams: their forecasts, a row each."""

from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.checks import checked_count
from pfbr.errors import InputError, ModelError
from pfbr.inference.clock import Clock, moments_since
from pfbr.inference.draws import Draws
from pfbr.inference.forecast import Ahead, Drawn, draw_ahead, forecast_key
from pfbr.inference.method import Method, State
from pfbr.inference.panel.steps import stream_key
from pfbr.inference.panel.streams import Streams
from pfbr.models.base import Model
from pfbr.models.unknowns import Unknowns
from pfbr.typing import Key


class Forecasts:
    """Of R streams, each with `states` and `observations` at h times: `mean()` (R, h, …), `std()`, `quantile(q)`
    (*q.shape, R, h, …) and `samples` (R, h, n, …), equally weighted. `times` (R, h) are in the panel's own clock."""

    def __init__(self, streams: list[Hashable], times: np.ndarray, drawn: Drawn, model: Model):
        self.streams, self.times = streams, times
        lead = np.shape(drawn.states)[:3]
        weights = np.full(lead, 1.0 / lead[2])
        self.states = Draws.of(drawn.states, np.log(weights), Unknowns.of(model))
        self._observations = None if drawn.observations is None else Draws(np.asarray(drawn.observations), weights)
        self._model = type(model).__name__

    @property
    def observations(self) -> Draws:
        if self._observations is None:
            raise ModelError(
                f"{self._model} has no `sample_observation(key, x)`, with which observations are forecast: add the "
                "method. `states` does without it."
            )
        return self._observations

    def __len__(self) -> int:
        return len(self.streams)

    def __repr__(self) -> str:
        return f"Forecasts({len(self)} streams, {self.times.shape[1]} times, {self.states.weights.shape[2]} samples)"


@eqx.filter_jit
def _drawn(
    key: Key,
    numbers: Array,
    stages: Array,
    method: Method,
    model: Model,
    states: State,
    ahead: Ahead,
    inputs: Any,
    length: int,
) -> Drawn:
    def one(number, stage, state, own):
        particles, parameters = method.particles(state.own), method.parameters(model, state.own)
        given = Ahead(own.dt, own.time, inputs)
        drawn = draw_ahead(forecast_key(stream_key(key, number), stage), model, particles, parameters, given, length)
        return Drawn(drawn.states, drawn.observations)

    return jax.vmap(one)(numbers, stages, states, ahead)


def steps_ahead(
    clock: Clock | None, now: np.ndarray, horizon: int | None, times: Any, needs_dt: bool
) -> tuple[Ahead, np.ndarray, int]:
    """The steps that a user asks for, for streams that have come to `now`; their times; and how many they are."""
    if (horizon is None) == (times is None):
        raise InputError("say how far to look: `predict(horizon=7)`, or the `times` to come; one of the two.")
    dtype = jnp.result_type(float)
    if times is None:
        length = checked_count("horizon", horizon, least=1, why="a number of steps to come")
        since = now[:, None] + np.arange(1.0, length + 1)
        dt = np.ones(since.shape, dtype)
    else:
        shown = np.atleast_1d(np.asarray(times))
        length, common = len(shown), moments_since(clock or Clock(), shown)
        since = np.broadcast_to(common, (len(now), length))
        dt = np.diff(since, prepend=now[:, None]).astype(dtype)
        if np.any(dt < 0):
            raise InputError("`times` go back, or lie before the last report of a stream: a forecast looks ahead.")
    told = (clock or Clock()).moments(since.reshape(-1)).reshape(since.shape)
    return Ahead(dt if needs_dt or times is not None else None, since.astype(dtype)), told, length


def draw_streams(held: Streams, places: np.ndarray, ahead: Ahead, inputs: Any, length: int, model: Model) -> Drawn:
    """Paths of many streams, store by store."""
    found: Any = None
    for number, store in enumerate(held.stores):
        here = np.flatnonzero(held.store[places] == number)
        if not here.size:
            continue
        own = places[here]
        steps = jax.tree.map(lambda leaf, here=here: leaf[here], ahead)
        drawn = _drawn(
            held.key,
            held.number[own],
            held.stage[own],
            store.method,
            model,
            store.read(held.slot[own]),
            steps,
            inputs,
            length,
        )
        if found is None:
            found = jax.tree.map(lambda leaf: np.zeros((len(places), *leaf.shape[1:]), leaf.dtype), drawn)
        jax.tree.map(lambda room, leaf, here=here: room.__setitem__(here, np.asarray(leaf)), found, drawn)
    return found
