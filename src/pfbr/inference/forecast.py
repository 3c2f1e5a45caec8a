"""What comes next: states and observations drawn from the posterior and moved on, before anything is seen.

Keys: forecasts after stage m have the key `fold_in(fold_in(key, 2³¹), m)`, step h of one `fold_in(·, h)`. No step of a
stream has the number 2³¹, so that forecasting changes nothing of a session, the same call gives the same forecast, and
a longer horizon begins with the shorter one's draws.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.checks import checked_count
from pfbr.errors import InputError, ModelError
from pfbr.inference.clock import Clock, moments_since
from pfbr.inference.display import html, plots
from pfbr.inference.display.columns import Column, clock_words, columns
from pfbr.inference.draws import Draws
from pfbr.inference.method import Method, State
from pfbr.inference.rows import RowReader
from pfbr.models.base import Model, StateSpaceModel, has_observations
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles
from pfbr.particles.qmc import draw_transition
from pfbr.particles.resampling import systematic
from pfbr.typing import Key

FORECASTS = np.uint32(2**31)


class Ahead(eqx.Module):
    """Steps to come, each leading with their number: elapsed time, time since the start, inputs; None is what did not
    come, or what the model does not ask for."""

    dt: Any = None
    time: Any = None
    inputs: Any = None


class Drawn(eqx.Module):
    """Equally weighted draws: states (h, n, d) as free numbers, observations (h, n, …), parameters (n, …)."""

    states: Array
    observations: Any = None
    parameters: Any = None


class Forecast:
    """States and observations at times to come, each with `mean()` (h, …), `std()`, `quantile(q)` (*q.shape, h, …) and
    `samples` (h, n, …), equally weighted; sample i is one path. `times` are in the session's own clock.

    Named unknowns are dicts on the user's own scale, as in posteriors; `parameters` are those of each path.
    """

    def __init__(self, times: np.ndarray, drawn: Drawn, model: Model):
        self.times = times
        lead = np.shape(drawn.states)[:2]
        weights = np.full(lead, 1.0 / lead[1])
        self.states = Draws.of(drawn.states, np.log(weights), Unknowns.of(model))
        self._observations = None if drawn.observations is None else Draws(np.asarray(drawn.observations), weights)
        beside = jax.tree.map(np.asarray, drawn.parameters)
        self.parameters = None if drawn.parameters is None else Draws(beside, weights[0])
        self._model = type(model).__name__
        unknowns = Unknowns.of(model)
        self._names = unknowns.names if unknowns else ()

    @property
    def observations(self) -> Draws:
        if self._observations is None:
            raise ModelError(
                f"{self._model} has no `sample_observation(key, x)`, with which observations are forecast: add the "
                "method. `forecast.states` does without it."
            )
        return self._observations

    def __len__(self) -> int:
        return len(self.times)

    def plot(
        self,
        *,
        names: Sequence[str] | None = None,
        past: Any = None,
        past_times: Any = None,
        truth: Any = None,
        axes: Any = None,
    ) -> Any:
        """A figure (matplotlib) of the observations to come, or of the states where the model draws none: median,
        central 50 % and 90 %.

        `past` are observations (T, …) that came before, drawn as dots at `past_times`, or one unit apart before the
        forecast; `truth` is what then came (h, …). `axes` are yours to draw on.
        """
        x, label = plots.axis_of(self.times, len(self))
        before: Any = None
        if past is not None:
            length = np.shape(past)[0]
            back = np.arange(-length, 0)
            step = back if x.dtype.kind != "M" else back * ((x[1] - x[0]) if len(x) > 1 else np.timedelta64(1, "D"))
            before = x[0] + step if past_times is None else plots.axis_of(past_times, length)[0]
        told = {"past": past, "past_times": before, "truth": truth}
        return plots.paths(self._columns, x, x_label=label, names=names, axes=axes, **told)

    @property
    def _columns(self) -> list[Column]:
        if self._observations is not None:
            return columns(self._observations, "y")
        return columns(self.states, "x", self._names)

    def _repr_html_(self) -> str:
        what = "states" if self._observations is None else "observations"
        times = clock_words(self.times)
        told = [f"{times[0]} to {times[-1]}", f"{self.states.weights.shape[1]} samples"]
        return html.forecast_html(f"Forecast of {what}", told, self._columns, self.times)

    def __repr__(self) -> str:
        n = self.states.weights.shape[1]
        return f"Forecast({len(self)} times from {self.times[0]} to {self.times[-1]}, {n} samples)"


def forecast_key(key: Key, stage: int | Array) -> Key:
    """The key of all forecasts after `stage` observations."""
    return jax.random.fold_in(jax.random.fold_in(key, FORECASTS), stage)


def draw_ahead(key: Key, model: Model, particles: Particles, parameters: Any, ahead: Ahead, length: int) -> Drawn:
    """Resample once, then move every draw on, one scan over `length` steps; parameters go with their states.

    Noise is quasi-random and matched to the states where transitions are functions of normals: means and covariances
    of linear dynamics are then those of the formula.
    """
    start_key, path_key = jax.random.split(key)
    n = particles.points.shape[0]
    kept = systematic(start_key, particles.log_weights, n)
    begun, beside = jax.tree.map(lambda leaf: leaf[kept], (particles.points, parameters))
    moves, observes, words = isinstance(model, StateSpaceModel), has_observations(model), all_needs(model)

    def one(points, step):
        number, now = step
        move_key, observe_key = jax.random.split(jax.random.fold_in(path_key, number))

        def here(params) -> Any:
            time = now.time if "time" in words else None
            return bind(model, Conditions(now.dt, time, now.inputs if "inputs" in words else None, None, params))

        if moves and beside is None:
            points = draw_transition(move_key, here(None), points)
        elif moves:
            move = lambda k, x, params: here(params).sample_transition(k, x)
            points = jax.vmap(move)(jax.random.split(move_key, n), points, beside)
        observed = None
        if observes:
            observe = lambda k, x, params: here(params).sample_observation(k, x)
            observed = jax.vmap(observe)(jax.random.split(observe_key, n), points, beside)
        return points, (points, observed)

    _, (states, observations) = jax.lax.scan(one, begun, (jnp.arange(length), ahead), length=length)
    return Drawn(states, observations, beside)


def drawn_ahead(key: Key, stage: int, method: Method, model: Model, state: State, ahead: Ahead, length: int) -> Drawn:
    """`draw_ahead` compiled, after `stage` observations of a stream with this key."""
    parts = method.particles(state.own), method.parameters(model, state.own)
    return _compiled(key, np.asarray(stage, np.int32), model, *parts, ahead, length)


@eqx.filter_jit
def _compiled(key: Key, stage: Any, model: Model, particles: Particles, parameters: Any, ahead: Ahead, length: int):
    return draw_ahead(forecast_key(key, stage), model, particles, parameters, ahead, length)


def read_ahead(reader: RowReader, clock: Clock, horizon: Any, times: Any, inputs: Any) -> tuple[Ahead, np.ndarray, int]:
    """The steps that a user asks for, their times in the session's own clock, and how many they are."""
    if (horizon is None) == (times is None):
        raise InputError("say how far to look: `predict(horizon=7)`, or the `times` to come; one of the two.")
    dtype = jnp.result_type(float)
    if times is None:
        length = checked_count("horizon", horizon, least=1, why="a number of steps to come")
        since = clock.now + np.arange(1.0, length + 1)
        shown = clock.moments(since)
        dt = np.ones(length, dtype) if reader.needs_dt else None
    else:
        shown = np.atleast_1d(np.asarray(times))
        if shown.ndim != 1 or shown.size == 0:
            raise InputError(f"`times` must be a list of times to come; got shape {np.shape(times)}.")
        length, since = len(shown), moments_since(clock, shown)
        dt = np.diff(since, prepend=clock.now)
        if np.any(dt < 0):
            at = int(np.argmax(dt < 0))
            after = "the last observation" if at == 0 else f"{shown[at - 1]}"
            raise InputError(
                f"`times` go back at number {at + 1}: {shown[at]} comes before {after}. A forecast looks ahead: sort "
                "the times, and leave out those that have passed."
            )
        dt = dt.astype(dtype)
    return Ahead(dt, since.astype(dtype), reader.read_inputs_ahead(inputs, length)), shown, length
