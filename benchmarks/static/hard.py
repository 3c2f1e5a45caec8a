"""Problems in the plane that are hard on purpose: a mode the prior hardly holds, steps, heavy tails in wrong units."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import normal
from benchmarks.static.plane import Plane, PlaneProblem
from benchmarks.static.problem import Problem

ROWS = 20


class FarMode(Plane):
    """x ~ 0.999 N(0, I) + 0.001 N((8, 8), I), y ~ N(x, 1), and the truth is in the far one."""

    prior_sd: float = eqx.field(static=True, default=3.0)  # of the grid's reach

    def sample_prior(self, key):
        k1, k2 = jax.random.split(key)
        return jax.random.normal(k1, (2,)) + 8.0 * (jax.random.uniform(k2) < 1e-3)

    def log_prior(self, x):
        near, far = jnp.sum(normal(x, 0.0, 1.0)), jnp.sum(normal(x, 8.0, 1.0))
        return jnp.logaddexp(jnp.log(0.999) + near, jnp.log(0.001) + far)

    def log_likelihood(self, x, observation):
        return jnp.sum(normal(observation, x, 1.0))


class Steps(Plane):
    """y ~ U(a · x − 1, a · x + 1): hard edges, and no gradient anywhere; inputs are a."""

    def log_likelihood(self, x, observation, *, inputs):
        return jnp.where(jnp.abs(observation[0] - inputs @ x) < 1.0, -jnp.log(2.0), -jnp.inf)


class HeavyTails(Plane):
    """x ~ Cauchy(0, 0.01) each, y ~ N(x, 1), with x = (4, −6): what the prior's scale says nothing about."""

    prior_sd: float = eqx.field(static=True, default=3.0)  # of the grid's reach

    def sample_prior(self, key):
        return 0.01 * jax.random.cauchy(key, (2,))

    def log_prior(self, x):
        return -jnp.sum(jnp.log1p((x / 0.01) ** 2))

    def log_likelihood(self, x, observation):
        return jnp.sum(normal(observation, x, 1.0))


def far_mode(seed: int) -> Problem:
    y = 8.0 + np.random.default_rng(seed).standard_normal((ROWS, 2))
    return PlaneProblem("far-mode-2", seed, FarMode(), ["x0", "x1"], y)


def steps(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    directions = rng.normal(0, 1, (ROWS, 2))
    y = directions @ rng.normal(0, 1.5, 2) + rng.uniform(-1, 1, ROWS)
    return PlaneProblem("steps-2", seed, Steps(), ["x0", "x1"], y[:, None], directions)


def heavy_tails(seed: int) -> Problem:
    y = np.array([4.0, -6.0]) + np.random.default_rng(seed).standard_normal((ROWS, 2))
    return PlaneProblem("heavy-tails-2", seed, HeavyTails(), ["x0", "x1"], y)
