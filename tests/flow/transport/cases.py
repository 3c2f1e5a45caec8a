"""Densities before an observation, and observations, whose answers are known."""

from dataclasses import dataclass

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.transport.transport import Grid


class Normal:
    """N(0, I) before the observation."""

    def draws(self, key, num):
        return jax.random.normal(key, (num, self.dim))

    def log_before(self, x):
        return -0.5 * jnp.sum(x**2)

    @property
    def log_evidence(self):
        """By many draws in the few coordinates that are seen."""
        draws = np.random.default_rng(0).normal(size=(400_000, self.dim)).astype(np.float32)
        values = jax.jit(jax.vmap(self.log_likelihood))(jnp.asarray(draws))
        return float(jax.nn.logsumexp(values) - np.log(len(draws)))


@dataclass(frozen=True)
class Quadratic(Normal):
    """The sum of all coordinates, seen with noise."""

    dim: int
    std: float

    def log_likelihood(self, x):
        return -0.5 * ((jnp.sum(x) - 1) / self.std) ** 2

    def posterior(self):
        ones = np.ones(self.dim)
        covariance = np.linalg.inv(np.eye(self.dim) + np.outer(ones, ones) / self.std**2)
        return covariance @ ones / self.std**2, covariance


@dataclass(frozen=True)
class Ring(Normal):
    """The distance from a place, in two coordinates."""

    dim: int

    def log_likelihood(self, x):
        return -0.5 * ((jnp.sqrt((x[0] - 0.5) ** 2 + x[1] ** 2 + 1e-4) - 1.2) / 0.3) ** 2


@dataclass(frozen=True)
class Scale(Normal):
    """A number whose mean and log standard deviation are unknown."""

    dim: int

    def log_likelihood(self, x):
        return -0.5 * ((1.5 - x[0]) * jnp.exp(-x[1])) ** 2 - x[1]


@dataclass(frozen=True)
class Counts(Normal):
    """Seven events, whose log rate is a coordinate."""

    dim: int

    def log_likelihood(self, x):
        rate = 1 + (x[0] + x[1]) / 2**0.5
        return 7 * rate - jnp.exp(rate)


CURVED = [Ring(2), Ring(10), Scale(2), Counts(10)]


@dataclass(frozen=True)
class TwoLumps:
    dim: int

    def draws(self, key, num):
        which, noise = jax.random.split(key)
        sign = jnp.where(jax.random.bernoulli(which, 0.5, (num, 1)), 1.0, -1.0)
        return jax.random.normal(noise, (num, self.dim)) * 0.6 + sign * jnp.eye(self.dim)[0]

    def log_before(self, x):
        lump = lambda sign: -0.5 * jnp.sum((x - sign * jnp.eye(self.dim)[0]) ** 2) / 0.36
        return jnp.logaddexp(lump(1.0), lump(-1.0))


@dataclass(frozen=True)
class Scaled:
    """The same in other units."""

    case: Normal
    unit: jax.Array

    def log_before(self, x):
        return self.case.log_before(x / self.unit)

    def log_likelihood(self, x):
        return self.case.log_likelihood(x / self.unit)


def grid(ticks, values, root, mean):
    return Grid([ticks, ticks], [ticks, ticks], values, jnp.zeros((len(values), len(mean))), mean, root)
