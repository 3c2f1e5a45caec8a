"""Group effects with unknown mean and spread, in both parametrisations. Truth by a grid over the spread."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import log_half_normal, moments_of_mixture, normal, sample_log_half_normal
from benchmarks.static.problem import Posterior, Problem
from pfbr.models.base import Model

PER_GROUP = 3  # rows
SCALE = 10.0  # of mu and of tau


class Hierarchical(Model):
    """mu ~ N(0, 10), tau half-normal(10), theta_g ~ N(mu, tau); rows y ~ N(theta_group, known sd).

    x = (mu, log tau, theta) centred, or (mu, log tau, (theta − mu) / tau) non-centred; inputs = (group, sd).
    """

    groups: int = eqx.field(static=True)
    centred: bool = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return self.groups + 2

    def sample_prior(self, key):
        k1, k2, k3 = jax.random.split(key, 3)
        mu, log_tau = SCALE * jax.random.normal(k1), sample_log_half_normal(k2, SCALE)
        z = jax.random.normal(k3, (self.groups,))
        return jnp.concatenate([jnp.stack([mu, log_tau]), mu + jnp.exp(log_tau) * z if self.centred else z])

    def log_prior(self, x):
        hyper = normal(x[0], 0.0, SCALE) + log_half_normal(x[1], SCALE)
        effects = normal(x[2:], x[0], jnp.exp(x[1])) if self.centred else normal(x[2:], 0.0, 1.0)
        return hyper + jnp.sum(effects)

    def log_likelihood(self, x, observation, *, inputs):
        # a product with an indicator instead of an index: group numbers are floats in a row of floats
        effect = (jnp.arange(self.groups) == inputs[0]).astype(x.dtype) @ x[2:]
        theta = effect if self.centred else x[0] + jnp.exp(x[1]) * effect
        return normal(observation[0], theta, inputs[1])


def hierarchical(groups: int, centred: bool, seed: int) -> Problem:
    rng = np.random.default_rng([seed, groups])
    theta = rng.normal(4, 5, groups)
    who = np.concatenate([rng.permutation(groups) for _ in range(PER_GROUP)])
    sd = rng.uniform(5, 15, len(who))
    y = rng.normal(theta[who], sd)
    y, sd = (values.astype(np.float32).astype(float) for values in (y, sd))
    known = lambda stage: posterior(groups, centred, y[:stage], who[:stage], sd[:stage])
    name = f"hierarchical-{'centred' if centred else 'noncentred'}-{groups}"
    unknowns = ["mu", "log_tau"] + [f"g{i}" for i in range(groups)]
    inputs = np.column_stack([who, sd])
    return Problem(name, seed, Hierarchical(groups, centred), unknowns, y[:, None], inputs, known)


def posterior(groups: int, centred: bool, y: np.ndarray, who: np.ndarray, sd: np.ndarray) -> Posterior:
    """Given tau, (mu, z) are Gaussian with y = mu + tau z_group + noise."""
    grid = np.linspace(np.log(SCALE) - 14, np.log(SCALE) + 2, 1601)
    design = np.ones((len(y), groups + 1))
    prior = np.concatenate([[SCALE**2], np.ones(groups)])
    logw, means, covs = [], [], []
    for log_tau in grid:
        tau = np.exp(log_tau)
        design[:, 1:] = tau * (who[:, None] == np.arange(groups))
        cov = np.linalg.inv(np.diag(1 / prior) + design.T @ (design / sd[:, None] ** 2))
        mean = cov @ (design.T @ (y / sd**2))
        marginal = np.diag(sd**2) + design * prior @ design.T
        fit = -0.5 * np.linalg.slogdet(2 * np.pi * marginal)[1] - 0.5 * y @ np.linalg.solve(marginal, y)
        logw.append(fit + 0.5 * np.log(2 / np.pi) - np.log(SCALE) - 0.5 * (tau / SCALE) ** 2 + log_tau)
        if centred:
            turn = np.eye(groups + 1)
            turn[1:, 0] = 1
            turn[1:, 1:] = tau * np.eye(groups)
            mean, cov = turn @ mean, turn @ cov @ turn.T
        means.append(np.insert(mean, 1, log_tau))
        covs.append(np.insert(np.insert(cov, 1, 0, axis=0), 1, 0, axis=1))
    weights = np.exp(np.array(logw) - max(logw))
    evidence = max(logw) + np.log(weights.sum() * (grid[1] - grid[0]))
    mean, cov = moments_of_mixture(weights / weights.sum(), np.array(means), np.array(covs))
    return Posterior(mean, cov, evidence, 0.0)
