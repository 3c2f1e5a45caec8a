"""A Gaussian process over eleven places, with unknown length and amplitude, seen through counts. d = 13. By chains."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import log_half_normal, normal, sample_log_half_normal
from benchmarks.static.problem import Problem
from pfbr.models.base import Model

PLACES, ROUNDS = 11, 3


class ProcessWithCounts(Model):
    """x = (log length, log amplitude, eleven standard normals z); f = 2 + amplitude · chol(K) z; y ~ Poisson(exp f)."""

    dim: int = eqx.field(static=True, default=PLACES + 2)

    def sample_prior(self, key):
        k = jax.random.split(key, 3)
        hyper = jnp.stack([jnp.log(4.0) + 0.6 * jax.random.normal(k[0]), sample_log_half_normal(k[1], 2.0)])
        return jnp.concatenate([hyper, jax.random.normal(k[2], (PLACES,))])

    def log_prior(self, x):
        return normal(x[0], jnp.log(4.0), 0.6) + log_half_normal(x[1], 2.0) + jnp.sum(normal(x[2:], 0.0, 1.0))

    def log_likelihood(self, x, observation, *, inputs):
        grid = jnp.linspace(-10.0, 10.0, PLACES, dtype=x.dtype)
        k = jnp.exp(-0.5 * ((grid[:, None] - grid) / jnp.exp(x[0])) ** 2) + 1e-4 * jnp.eye(PLACES, dtype=x.dtype)
        here = (jnp.arange(PLACES) == inputs[0]).astype(x.dtype)
        f = 2.0 + jnp.exp(x[1]) * (here @ jnp.linalg.cholesky(k) @ x[2:])
        return observation[0] * f - jnp.exp(f) - jax.scipy.special.gammaln(observation[0] + 1)


def process_with_counts(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    where = np.concatenate([rng.permutation(PLACES) for _ in range(ROUNDS)])
    grid = np.linspace(-10, 10, PLACES)
    k = np.exp(-0.5 * (grid[:, None] - grid) ** 2 / 5.0**2) + 1e-6 * np.eye(PLACES)
    f = 2.0 + 1.2 * np.linalg.cholesky(k) @ rng.standard_normal(PLACES)
    y = rng.poisson(np.exp(np.clip(f[where], None, 6)))
    unknowns = ["log_length", "log_amplitude"] + [f"z{i}" for i in range(PLACES)]
    return Problem("process-13", seed, ProcessWithCounts(), unknowns, y[:, None], where[:, None])
