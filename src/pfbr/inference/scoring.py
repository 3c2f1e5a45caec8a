"""A stream that scores itself: every observation judged by the forecast that was there before it was absorbed."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import ModelError
from pfbr.inference.forecast import Ahead, draw_ahead, drawn_ahead, forecast_key
from pfbr.inference.info import FIELDS, Info
from pfbr.inference.method import Method, Recorded, State, Stream
from pfbr.inference.rows import Row
from pfbr.models.base import Model, has_observations
from pfbr.particles.particles import Particles
from pfbr.particles.sample_scores import checked_levels, crps, interval_scores
from pfbr.typing import Key, Numbers

LEVELS = (0.5, 0.9)


class Scores:
    """Of one-step-ahead forecasts, (…, T, *observation) each; NaN where nothing was observed. Smaller is better for
    `crps` and `interval_score`; `covered` should average to the level. With a level first: `covered`, `width` and
    `interval_score`. `log_predictive` (…, T) is the log score, of an observation as a whole; larger is better."""

    def __init__(self, samples: np.ndarray, observed: np.ndarray, levels: Numbers, log_predictive: Any, *, axis: int):
        self.levels = checked_levels(levels)
        self.crps = crps(samples, observed, axis=axis)
        self.covered, self.width, self.interval_score = interval_scores(samples, observed, self.levels, axis=axis)
        self.log_predictive = None if log_predictive is None else np.asarray(log_predictive)

    def summary(self) -> dict[str, float]:
        """Means over everything that was observed, by name: `crps`, `log_predictive`, `coverage_90`, `width_90` …"""
        means = {"crps": _mean(self.crps)}
        if self.log_predictive is not None:
            means["log_predictive"] = _mean(self.log_predictive)
        for i, level in enumerate(self.levels):
            means[f"coverage_{_percent(level)}"] = _mean(self.covered[i])
            means[f"width_{_percent(level)}"] = _mean(self.width[i])
            means[f"interval_score_{_percent(level)}"] = _mean(self.interval_score[i])
        return means

    def details(self) -> dict[str, np.ndarray]:
        """Of a single step, for its `info`."""
        named = {"crps": self.crps}
        for i, level in enumerate(self.levels):
            named[f"covered_{_percent(level)}"] = self.covered[i]
            named[f"width_{_percent(level)}"] = self.width[i]
            named[f"interval_score_{_percent(level)}"] = self.interval_score[i]
        return named

    def __repr__(self) -> str:
        return f"Scores({', '.join(f'{name}={value:.4g}' for name, value in self.summary().items())})"


def check_scorable(model: Model) -> None:
    """Scores need observations to be drawn."""
    if not has_observations(model):
        raise ModelError(
            f"{type(model).__name__} has no `sample_observation(key, x)`, with which observations are forecast and "
            "scored: add the method. `info.log_predictive` does without it."
        )


def score_recorded(
    key: Key, model: Model, recorded: Recorded, stream: Stream, *, stage: int, now: float, levels: Numbers = LEVELS
) -> Scores:
    """Scores of a stream (T, …), or of many (S, T, …), that went on from `stage` and the time `now`.

    The draws are those that `Session.predict` gives just before each observation.
    """
    check_scorable(model)
    checked_levels(levels)
    observations = np.asarray(stream.observations, dtype=float)
    lead = np.shape(recorded.particles.log_weights)[:-1]
    if stream.observed is not None:
        observations = np.where(np.asarray(stream.observed), observations, np.nan)
    dt = np.ones(lead) if stream.dt is None else np.asarray(stream.dt, dtype=float)
    ahead = Ahead(stream.dt, (now + np.cumsum(dt, axis=-1)).astype(jnp.result_type(float)), stream.inputs)
    axis = len(lead) - 1

    def one_earlier(first, after):
        """What was there before each observation: the beginning, and all but the last."""
        earlier = jax.lax.slice_in_dim(after, 0, lead[axis] - 1, axis=axis)
        return jnp.concatenate([jnp.expand_dims(first, axis), earlier], axis)

    before = jax.tree.map(
        one_earlier, (recorded.before, recorded.parameters_before), (recorded.particles, recorded.parameters)
    )
    if axis == 0:
        samples = _one_step_ahead(key, np.asarray(stage, np.int32), model, *before, ahead)
    else:
        samples = _many_one_step_ahead(key, np.asarray(stage, np.int32), model, *before, ahead)
    return Scores(np.asarray(samples), observations, levels, recorded.info.log_predictive, axis=len(lead))


def score_row(
    key: Key, stage: int, method: Method, model: Model, state: State, row: Row, time: float
) -> dict[str, np.ndarray]:
    """Scores of a single observation before it is absorbed."""
    one = jax.tree.map(lambda leaf: leaf[None], (row.dt, row.inputs))
    ahead = Ahead(one[0], np.asarray([time], jnp.result_type(float)), one[1])
    drawn = drawn_ahead(key, stage, method, model, state, ahead, 1)
    observed = np.asarray(row.observation, dtype=float)
    if row.observed is not None:
        observed = np.where(row.observed, observed, np.nan)
    return Scores(np.asarray(drawn.observations[0]), observed, LEVELS, None, axis=0).details()


def with_details(info: Info, more: dict[str, Any]) -> Info:
    """An info that has more to say."""
    return Info(**{name: getattr(info, name) for name in FIELDS}, details={**info.details, **more})


@eqx.filter_jit
def _one_step_ahead(key: Key, stage: Any, model: Model, particles: Particles, parameters: Any, ahead: Ahead) -> Array:
    """(T, n, …): step by step, so that memory stays what one forecast takes."""

    def one(step):
        index, own, beside, now = step
        steps = jax.tree.map(lambda leaf: leaf[None], now)
        return draw_ahead(forecast_key(key, stage + index), model, own, beside, steps, 1).observations[0]

    length = particles.points.shape[0]
    return jax.lax.map(one, (jnp.arange(length, dtype=jnp.int32), particles, parameters, ahead))


@eqx.filter_jit
def _many_one_step_ahead(key: Key, stage: Any, model: Model, particles, parameters, ahead: Ahead) -> Array:
    """(S, T, n, …); stream s has the key fold_in(key, s)."""
    keys = jax.vmap(lambda s: jax.random.fold_in(key, s))(jnp.arange(particles.points.shape[0]))
    single = lambda k, *rest: _one_step_ahead(k, stage, model, *rest)
    return jax.vmap(single)(keys, particles, parameters, ahead)


def _mean(values: np.ndarray) -> float:
    seen = values[~np.isnan(values)]
    return float(np.mean(seen)) if seen.size else float("nan")


def _percent(level: float) -> str:
    return f"{100 * level:g}"
