"""Logistic, binomial and Poisson regression, vague priors, covariates neither centred nor scaled. Truth by chains."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import normal
from benchmarks.static.problem import Problem
from pfbr.models.base import Model

ROWS = {2: 200, 10: 500, 30: 800}


class Regression(Model):
    """beta ~ N(0, scales); inputs are the covariates, and the number of trials last where the kind is binomial."""

    scales: np.ndarray
    kind: str = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def sample_prior(self, key):
        return self.scales * jax.random.normal(key, (self.dim,))

    def log_prior(self, x):
        return jnp.sum(normal(x, 0.0, self.scales))

    def log_likelihood(self, x, observation, *, inputs):
        """Up to the binomial coefficient, which no unknown changes."""
        eta, y = inputs[: self.dim] @ x, observation[0]
        if self.kind == "poisson":
            return y * eta - jnp.exp(eta) - jax.scipy.special.gammaln(y + 1)
        trials = inputs[self.dim] if self.kind == "binomial" else 1.0
        return y * eta - trials * jax.nn.softplus(eta)


def regression(kind: str, dim: int, seed: int) -> Problem:
    rng = np.random.default_rng([seed, dim])
    rows = ROWS[dim]
    # an intercept and correlated covariates with means and scales of their own
    mix = rng.normal(size=(dim - 1, dim - 1)) / np.sqrt(dim) + np.eye(dim - 1)
    plain = rng.normal(size=(rows, dim - 1)) @ mix
    offset, scale = rng.uniform(-3, 3, dim - 1), np.exp(rng.uniform(-2, 2, dim - 1))
    design = np.column_stack([np.ones(rows), (plain + offset) * scale])
    slope = rng.normal(0, 1 / np.sqrt(dim), dim - 1)
    counts = kind == "poisson"
    eta = (0.7 if counts else 0.5) + plain @ slope * (0.6 if counts else 1.5)
    scales = np.concatenate([[5.0], 2.0 / scale]) if counts else np.concatenate([[10.0], 5.0 / scale])
    if counts:
        y = rng.poisson(np.exp(np.clip(eta, None, 6)))
    elif kind == "binomial":
        trials = rng.integers(1, 20, rows)
        y = rng.binomial(trials, 1 / (1 + np.exp(-eta)))
        design = np.column_stack([design, trials])
    else:
        y = rng.random(rows) < 1 / (1 + np.exp(-eta))
    model = Regression(scales, kind, dim)
    return Problem(f"{kind}-{dim}", seed, model, [f"b{i}" for i in range(dim)], y[:, None], design)
