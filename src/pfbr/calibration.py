"""Is the posterior right, stage by stage: where simulated truths rank among the particles, over many streams.

If x* and the stream come from the model, x* is one more draw of the posterior, so that its rank among the particles is
uniform at every stage (Talts et al. 2018). The distribution of ranks is judged by simultaneous bands about its ECDF
(Säilynoja, Bürkner and Vehtari 2022). Only computes and writes records; `calibration_page` draws them.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float
from scipy import stats

from pfbr.checks import checked_key, checked_methods_of, checked_model, checked_num_particles
from pfbr.errors import ModelError
from pfbr.models.base import Model, StateSpaceModel, has_observations
from pfbr.online import OnlineMethod, trace
from pfbr.particles import Particles, weighted_cov, weighted_mean
from pfbr.records import read_arrays, write_arrays
from pfbr.session import checked_fit_together
from pfbr.shapes import Key
from pfbr.tasks import simulate

RECORD = "calibration"  # the stem of its two files
ECDF_POINTS = 50
COVERAGES = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class CalibrationSettings:
    """How much is simulated; each field with its reason."""

    streams: int = 200  # a coverage of 0.95 is then known to 0.015
    length: int = 25  # as in the paper's linear system
    num_particles: int = 256  # as in the paper
    level: float = 0.05  # chance of refusing a perfect operator, over all stages and coordinates together


@dataclass(frozen=True)
class Calibration:
    """Settings and verdict, and arrays: `ranks` (streams, stages, d) in (0, 1), `coverage` (3, stages, d)."""

    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def trusted(self) -> bool:
        return self.settings["failed_from"] is None

    @property
    def verdict(self) -> str:
        return self.settings["verdict"]

    def save(self, directory: Path) -> None:
        write_arrays(directory, RECORD, self.settings, self.arrays)

    @classmethod
    def load(cls, directory: Path) -> "Calibration":
        return cls(*read_arrays(directory, RECORD, "pfbr calibrate OPERATOR SPEC --out DIR"))


def calibrate(
    key: Key,
    method: OnlineMethod,
    model: Model,
    *,
    settings: CalibrationSettings = CalibrationSettings(),
) -> Calibration:
    """Simulate streams, follow each with the method, and rank the truths at every stage."""
    model = checked_methods_of(checked_model(model))
    if not has_observations(model):
        raise ModelError(f"{type(model).__name__} has no `sample_observation(key, x)`: streams cannot be simulated.")
    checked_fit_together(method, model)
    num = checked_num_particles(settings.num_particles)
    data_key, run_key = jax.random.split(checked_key(key))
    drawn = _streams(data_key, model, settings.streams, settings.length)
    ranks = np.asarray(_followed(run_key, method, model, *drawn, num))
    low, high = ecdf_band(settings.streams, settings.level / (ranks.shape[1] * ranks.shape[2]))
    curves = ecdf(ranks)
    outside = np.any((curves < low[:, None, None]) | (curves > high[:, None, None]), axis=(0, 2))  # (t,)
    coverage = np.stack([np.mean(np.abs(ranks - 0.5) <= c / 2, axis=0) for c in COVERAGES])
    described: dict[str, Any] = {
        **asdict(settings),
        "model": type(model).__name__,
        "failed_stages": [int(i) + 1 for i in np.flatnonzero(outside)],
        "failed_from": int(np.flatnonzero(outside)[0]) + 1 if outside.any() else None,
    }
    if not isinstance(model, StateSpaceModel):
        gap, noise = _order_gap(run_key, method, model, drawn[0], num)
        described |= {"order_gap": float(gap), "noise_gap": float(noise)}
    described["verdict"] = _sentence(described, coverage)
    return Calibration(
        described,
        {"ranks": ranks, "coverage": coverage, "band_low": low, "band_high": high, "outside": outside},
    )


def ecdf(ranks: np.ndarray) -> np.ndarray:
    """Share of the streams (first axis) with a rank at most z, for z = 1/50 … 49/50."""
    points = np.arange(1, ECDF_POINTS) / ECDF_POINTS
    return np.mean(ranks[None] <= points.reshape(-1, *[1] * ranks.ndim), axis=1)


def ecdf_band(num: int, level: float, *, simulations: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends that the ECDF of `num` uniform ranks leaves anywhere with probability `level`.

    Binomial intervals at every point, all with the same pointwise level; which one is found by simulation.
    """
    rng = np.random.default_rng(0)
    points = np.arange(1, ECDF_POINTS) / ECDF_POINTS
    counts = np.arange(num + 1)
    below = stats.binom.cdf(counts[None], num, points[:, None])  # P(count ≤ c) at each point
    above = stats.binom.sf(counts[None] - 1, num, points[:, None])
    tail = 2 * np.minimum(below, above)
    drawn = np.cumsum(rng.multinomial(num, np.full(ECDF_POINTS, 1 / ECDF_POINTS), size=simulations), axis=1)[:, :-1]
    smallest = np.min(tail[np.arange(len(points)), drawn], axis=1)
    pointwise = np.quantile(smallest, level)
    inside = tail >= pointwise
    return counts[np.argmax(inside, axis=1)] / num, counts[num - np.argmax(inside[:, ::-1], axis=1)] / num


def rank(key: Key, particles: Particles, truth: Float[Array, " d"]) -> Float[Array, " d"]:
    """Where the truth lies among the particles, in (0, 1); uniform if it is one more draw, whatever their number."""
    n = particles.num_particles
    below = jnp.exp(particles.log_weights) @ (particles.points < truth).astype(particles.points.dtype)
    return (n * below + jax.random.uniform(key, truth.shape)) / (n + 1)


@eqx.filter_jit
def _streams(key, model, num, length):
    return jax.vmap(lambda k: simulate(k, model, length))(jax.random.split(key, num))


@eqx.filter_jit
def _followed(key, method, model, observations, truths, num_particles) -> Float[Array, "s t d"]:
    """One stream after the other: memory does not grow with their number, and repairs are made only on demand."""

    def one(inputs):
        stream_key, stream, truth = inputs
        run_key, rank_key = jax.random.split(stream_key)
        particles = trace(run_key, method, model, stream, num_particles).particles
        return jax.vmap(rank)(jax.random.split(rank_key, stream.shape[0]), particles, truth)

    return jax.lax.map(one, (jax.random.split(key, observations.shape[0]), observations, truths))


@eqx.filter_jit
def _order_gap(key, method, model, observations, num_particles):
    """How far apart two orders of the same data end, in standard deviations; and two runs of the same order."""

    def end(run_key, stream):
        particles = jax.tree.map(lambda leaf: leaf[-1], trace(run_key, method, model, stream, num_particles).particles)
        return weighted_mean(particles), jnp.sqrt(jnp.diagonal(weighted_cov(particles)))

    def one(inputs):
        stream_key, stream = inputs
        first_key, second_key, order_key = jax.random.split(stream_key, 3)
        mean, std = end(first_key, stream)
        other, _ = end(first_key, jax.random.permutation(order_key, stream))
        again, _ = end(second_key, stream)
        return jnp.mean(((mean - other) / std) ** 2), jnp.mean(((mean - again) / std) ** 2)

    few = observations[:32]
    gaps = jax.lax.map(one, (jax.random.split(key, few.shape[0]), few))
    return tuple(jnp.sqrt(jnp.mean(gap)) for gap in gaps)


def _sentence(described: dict[str, Any], coverage: np.ndarray) -> str:
    nominal = COVERAGES[-1]
    found = coverage[-1].mean(axis=1)
    start = described["failed_from"]
    if start is None:
        return (
            f"Trust this operator on streams like these: at every one of {described['length']} stages the ranks of the "
            f"truths look uniform, and {100 * nominal:.0f} % intervals held the truth "
            f"{100 * found.mean():.1f} % of the time."
        )
    where = "from the first observation on" if start == 1 else f"from observation {start} on"
    return (
        f"Do not trust this operator {where}: there the ranks of the truths are not uniform, and {100 * nominal:.0f} % "
        f"intervals held the truth {100 * found[start - 1 :].mean():.1f} % of the time."
    )
