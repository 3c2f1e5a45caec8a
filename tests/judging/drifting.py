"""A linear-Gaussian model that needs all that can come with an observation: elapsed times, inputs, gaps."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.models.base import LinearGaussian, StateSpaceModel, normal_log_densities, normal_log_density


class Drifting(StateSpaceModel):
    """A random walk pushed by its inputs and seen at irregular times; each coordinate may be missing."""

    dim: int = eqx.field(static=True, default=1)
    observation_std: float = 0.5

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return normal_log_density(x, 0.0, 1.0)

    def sample_transition(self, key, x, *, dt, inputs):
        return x + inputs + jnp.sqrt(dt) * jax.random.normal(key, (1,))

    def log_transition(self, x_next, x, *, dt, inputs):
        return normal_log_density(x_next, x + inputs, jnp.sqrt(dt))

    def log_likelihood(self, x, observation):
        return normal_log_densities(observation, x, self.observation_std)

    def sample_observation(self, key, x):
        return x + self.observation_std * jax.random.normal(key, (1,))

    def linear_gaussian(self, *, dt, inputs):
        one = jnp.ones((1, 1))
        noise = self.observation_std**2 * one
        return LinearGaussian(A=one, Q=dt * one, B=one, R=noise, mean=jnp.zeros(1), cov=one, a=inputs)

    def sample_inputs(self, key):
        return 3.0 * jax.random.normal(key, (1,))

    def sample_dt(self, key):
        return jax.random.exponential(key) + 0.1
