"""Two normal components in order, with unknown means, widths and share. d = 5. Truth by chains."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import log_half_normal, normal, sample_log_half_normal
from benchmarks.static.problem import Problem
from pfbr.models.base import Model

ROWS = 300


class OrderedMixture(Model):
    """x = (first mean, log of the gap, two log widths, logit of the first share)."""

    dim: int = eqx.field(static=True, default=5)

    def sample_prior(self, key):
        k = jax.random.split(key, 5)
        gauss = lambda i, mean, sd: mean + sd * jax.random.normal(k[i])
        widths = [sample_log_half_normal(k[i], 2.0) for i in (2, 3)]
        return jnp.stack([gauss(0, 0.0, 3.0), gauss(1, 1.0, 1.0), *widths, gauss(4, 0.0, 1.5)])

    def log_prior(self, x):
        centres = normal(x[0], 0.0, 3.0) + normal(x[1], 1.0, 1.0) + normal(x[4], 0.0, 1.5)
        return centres + log_half_normal(x[2], 2.0) + log_half_normal(x[3], 2.0)

    def log_likelihood(self, x, observation):
        first = jax.nn.log_sigmoid(x[4]) + normal(observation[0], x[0], jnp.exp(x[2]))
        second = jax.nn.log_sigmoid(-x[4]) + normal(observation[0], x[0] + jnp.exp(x[1]), jnp.exp(x[3]))
        return jnp.logaddexp(first, second)


def ordered_mixture(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    first = rng.random(ROWS) < 0.6
    y = np.where(first, rng.normal(-1.5, 0.8, ROWS), rng.normal(2.0, 1.2, ROWS))
    unknowns = ["mean", "log_gap", "log_sd0", "log_sd1", "logit_share"]
    return Problem("mixture-5", seed, OrderedMixture(), unknowns, y[:, None])
