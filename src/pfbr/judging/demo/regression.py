"""The second scene: a newcomer's regression, yearly values that nobody centred, under vague priors, row by row.

Given the noise the line is Gaussian, so that the truth is a sum over a grid of log sigma, exact at every row.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.posterior import Trace
from pfbr.inference.run import run as run_stream
from pfbr.judging.demo.record import DemoRecord, as_float32
from pfbr.models.base import Model, normal_log_densities
from pfbr.models.constraints import positive

NAME = "regression"
UNKNOWNS = ("intercept", "slope", "log sigma")
GRID = 4001  # values of log sigma from −8 to 8: four prior standard deviations, at a 250th of one
RIVALS = {"pfbr": "auto", "ibis": "ibis"}


@dataclass(frozen=True)
class RegressionSettings:
    """What the scene shows; each field with its reason."""

    seed: int = 2019
    years: tuple[int, int] = (1950, 2010)  # as they are: intercept and slope are correlated by −0.9999
    truth: tuple[float, float, float] = (9.3, 0.02, 0.5)  # at 1980, per year, noise
    num_particles: int = 256
    prior_stds: tuple[float, float, float] = (100.0, 5.0, 2.0)  # of intercept, slope, log sigma: vague


class Line(Model):
    """A straight line through noisy values, the noise unknown too."""

    unknowns = {"intercept": (), "slope": (), "sigma": positive}  # noqa: RUF012
    prior_stds: tuple[float, float, float] = (100.0, 5.0, 2.0)

    def sample_prior(self, key):
        a, b, c = jax.random.normal(key, (3,)) * jnp.asarray(self.prior_stds)
        return {"intercept": a, "slope": b, "sigma": jnp.exp(c)}

    def log_prior(self, x):
        log_sigma = jnp.log(x["sigma"])
        at = jnp.stack([x["intercept"], x["slope"], log_sigma])
        return jnp.sum(normal_log_densities(at, 0.0, jnp.asarray(self.prior_stds))) - log_sigma

    def log_likelihood(self, x, observation, *, inputs):
        return normal_log_densities(observation, x["intercept"] + x["slope"] * inputs, x["sigma"])


def run(
    *, settings: RegressionSettings = RegressionSettings(), say: Callable[[str], None] = lambda message: None
) -> DemoRecord:
    """Every posterior of the stream, by the default method and by IBIS, beside the exact one."""
    years, values = rows(settings)
    say("computing the exact posterior of a line with unknown noise, after every row")
    means, covs = exact(years, values, settings.prior_stds)
    arrays = {"years": years, "values": values, "truth_mean": means, "truth_cov": covs}
    seconds = {}
    for name, method in RIVALS.items():
        say(f"a regression, row by row, with {name}")
        began = time.process_time()
        trace = _stream(method, years, values, settings)
        compiled = time.process_time() - began
        began = time.process_time()
        trace = _stream(method, years, values, settings)
        seconds[name] = (time.process_time() - began, compiled)
        mean, cov = moments(trace)
        arrays |= {f"{name}_mean": mean, f"{name}_cov": cov, f"{name}_error": error(mean, means, covs)}
        if trace.info.flagged is not None:
            arrays[f"{name}_flagged"] = trace.info.flagged
    arrays["exact_error"] = np.full(len(years), 1 / np.sqrt(settings.num_particles))
    return DemoRecord(NAME, {**asdict(settings), "cpu_seconds": seconds}, as_float32(arrays))


def rows(settings: RegressionSettings) -> tuple[np.ndarray, np.ndarray]:
    """Years in the order in which they came, which is any, and a value for each."""
    rng = np.random.default_rng(settings.seed)
    level, slope, noise = settings.truth
    years = rng.permutation(np.arange(*settings.years)).astype(float)
    return years, level + slope * (years - 1980) + noise * rng.normal(size=len(years))


def _stream(method: str, years: np.ndarray, values: np.ndarray, settings: RegressionSettings) -> Trace:
    return run_stream(
        Line(prior_stds=settings.prior_stds),
        values[:, None],
        inputs=years,
        method=method,
        key=settings.seed,
        num_particles=settings.num_particles,
    )


def moments(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Means (T, 3) and covariances (T, 3, 3) of intercept, slope and log sigma."""
    free = trace.particles  # the free numbers: log sigma is the last of them
    mean = np.einsum("tn,tnd->td", trace.weights, free)
    centred = free - mean[:, None]
    return mean, np.einsum("tn,tni,tnj->tij", trace.weights, centred, centred)


def error(mean: np.ndarray, truth: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Mahalanobis distance from the true mean over √d, after every row."""
    away = mean - truth
    return np.sqrt(np.einsum("ti,ti->t", away, np.linalg.solve(cov, away[..., None])[..., 0]) / mean.shape[1])


def exact(years: np.ndarray, values: np.ndarray, prior_stds) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (intercept, slope, log sigma) after every row."""
    stages = [_exact(years[:m], values[:m], np.asarray(prior_stds)) for m in range(1, len(years) + 1)]
    return np.stack([mean for mean, _ in stages]), np.stack([cov for _, cov in stages])


def _exact(years: np.ndarray, values: np.ndarray, prior_stds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In units of the prior and along the singular vectors of the design, the line's two numbers are independent given
    sigma: nothing has to be inverted, however nearly collinear years and intercept are."""
    design = np.column_stack([np.ones_like(years), years]) * prior_stds[:2]
    u, s, vt = np.linalg.svd(design, full_matrices=True)
    s = np.append(s, np.zeros(2 - len(s)))
    projected = u.T @ values
    pull = s * np.append(projected, 0.0)[:2]  # one row has one direction
    log_sigma = np.linspace(-8.0, 8.0, GRID)
    noise = np.exp(2 * log_sigma)[:, None]
    seen = np.zeros(len(values))  # marginal variance of each projected value: sigma² + s²
    seen[: min(2, len(values))] = s[: len(values)] ** 2
    log_weight = -0.5 * np.sum(np.log(noise + seen) + projected**2 / (noise + seen), axis=1)
    log_weight -= 0.5 * (log_sigma / prior_stds[2]) ** 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    variances = 1 / (1 + s**2 / noise)
    means = variances * pull / noise
    back = prior_stds[:2, None] * vt.T
    full = np.column_stack([means @ back.T, log_sigma])
    centre = weight @ full
    spread = (weight[:, None] * (full - centre)).T @ (full - centre)
    spread[:2, :2] += back @ np.diag(weight @ variances) @ back.T
    return centre, spread
