"""Two models of the field that the frontier needs and no user has to build in: volatility, and Lorenz's weather."""

import jax
from jax import numpy as jnp

from pfbr.models.base import StateSpaceModel, normal_log_densities, normal_log_density

SUBSTEPS, SUBSTEP = 25, 0.01  # between two reports, as in the published tables


class Volatility(StateSpaceModel):
    """A return is N(0, exp(x)); the log variance x comes back to its mean, slowly."""

    mean: float = 0.0
    persistence: float = 0.97
    noise: float = 0.2

    @property
    def dim(self) -> int:
        return 1

    def prior_from_normal(self, z):
        return self.mean + self.noise / (1 - self.persistence**2) ** 0.5 * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (1,)))

    def log_prior(self, x):
        return normal_log_density(x, self.mean, self.noise / (1 - self.persistence**2) ** 0.5)

    def transition_from_normal(self, x, z):
        return self.mean + self.persistence * (x - self.mean) + self.noise * z

    def sample_transition(self, key, x):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)))

    def log_transition(self, x_next, x):
        return normal_log_density(x_next, self.mean + self.persistence * (x - self.mean), self.noise)

    def log_likelihood(self, x, observation):
        return normal_log_densities(observation[0], 0.0, jnp.exp(x[0] / 2))

    def sample_observation(self, key, x):
        return jnp.exp(x / 2) * jax.random.normal(key, (1,))


class Weather(StateSpaceModel):
    """Lorenz's three equations, without noise; all three are seen, with variance 2, every 0.25 units of time."""

    variance: float = 2.0

    @property
    def dim(self) -> int:
        return 3

    def prior_from_normal(self, z):
        return jnp.array([1.5, -1.5, 25.5]) + 2.0**0.5 * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (3,)))

    def log_prior(self, x):
        return normal_log_density(x, jnp.array([1.5, -1.5, 25.5]), 2.0**0.5)

    def sample_transition(self, key, x):
        return jax.lax.fori_loop(0, SUBSTEPS, lambda _, x: _runge_kutta(x), x)

    def log_likelihood(self, x, observation):
        return normal_log_density(observation, x, self.variance**0.5)

    def sample_observation(self, key, x):
        return x + self.variance**0.5 * jax.random.normal(key, (3,))


def _slope(x):
    return jnp.stack([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])


def _runge_kutta(x):
    a = _slope(x)
    b = _slope(x + SUBSTEP / 2 * a)
    c = _slope(x + SUBSTEP / 2 * b)
    return x + SUBSTEP / 6 * (a + 2 * b + 2 * c + _slope(x + SUBSTEP * c))
