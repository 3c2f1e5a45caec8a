"""A line with Student-t noise of unknown scale: outliers among the rows. Truth by chains, for one row by a grid."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import log_half_normal, moments_of_mixture, normal, sample_log_half_normal
from benchmarks.static.problem import Posterior, Problem
from pfbr.models.base import Model

FREEDOM, ROWS = 4.0, 200


class StudentLine(Model):
    """x = (intercept, slope, log scale)."""

    dim: int = eqx.field(static=True, default=3)

    def sample_prior(self, key):
        k1, k2 = jax.random.split(key)
        return jnp.append(jnp.array([50.0, 5.0]) * jax.random.normal(k1, (2,)), sample_log_half_normal(k2, 10.0))

    def log_prior(self, x):
        return normal(x[0], 0.0, 50.0) + normal(x[1], 0.0, 5.0) + log_half_normal(x[2], 10.0)

    def log_likelihood(self, x, observation, *, inputs):
        z = (observation[0] - x[0] - x[1] * inputs[0]) / jnp.exp(x[2])
        constant = 0.5 * jnp.log(jnp.pi * FREEDOM) + jax.scipy.special.gammaln(FREEDOM / 2)
        constant -= jax.scipy.special.gammaln((FREEDOM + 1) / 2)
        return -0.5 * (FREEDOM + 1) * jnp.log1p(z**2 / FREEDOM) - x[2] - constant


class StudentProblem(Problem):
    def _posterior(self, stage: int) -> Posterior:
        if stage > 1:
            return super()._posterior(stage)
        return after_one_row(float(self.observations[0, 0]), float(self.inputs[0, 0]))


def after_one_row(y: float, covariate: float) -> Posterior:
    """Student's t is a normal with a random precision: a grid over that and the scale, the line exact given both.

    Chains mix badly here: one row leaves a funnel.
    """
    log_scale, log_precision = np.meshgrid(np.linspace(-13, 5, 1200), np.linspace(-9, 3, 600), indexing="ij")
    cell = (18 / 1199) * (12 / 599)
    half = FREEDOM / 2  # the precision is gamma(half, rate half)
    precision = np.exp(log_precision)
    logw = half * np.log(half) + half * log_precision - half * precision - float(jax.scipy.special.gammaln(half))
    logw += 0.5 * np.log(2 / np.pi) - np.log(10.0) - 0.5 * (np.exp(log_scale) / 10) ** 2 + log_scale
    prior, row = np.diag([50.0**2, 5.0**2]), np.array([1.0, covariate])
    variance = row @ prior @ row + np.exp(2 * log_scale) / precision  # of y
    logw += -0.5 * np.log(2 * np.pi * variance) - 0.5 * y**2 / variance
    weights = np.exp(logw - logw.max()).ravel()
    evidence = logw.max() + np.log(weights.sum() * cell)
    gain = (prior @ row) / variance.ravel()[:, None]  # Kalman's
    means = np.column_stack([gain * y, log_scale.ravel()])
    covs = np.zeros((len(weights), 3, 3))
    covs[:, :2, :2] = prior - gain[:, :, None] * (row @ prior)
    mean, cov = moments_of_mixture(weights / weights.sum(), means, covs)
    return Posterior(mean, cov, evidence, 0.0)


def student_line(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    x = rng.uniform(10, 20, ROWS)
    y = 3 + 0.7 * x + 1.5 * rng.standard_t(FREEDOM, ROWS)
    unknowns = ["intercept", "slope", "log_scale"]
    return StudentProblem("student-3", seed, StudentLine(), unknowns, y[:, None], x[:, None])
