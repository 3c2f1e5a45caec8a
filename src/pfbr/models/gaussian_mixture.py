"""A mixture whose two components can swap places: a posterior with two modes."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.checks import checked_scale
from pfbr.models.base import Model, normal_log_density
from pfbr.typing import Key, Observation, Point, Real, Scalar


class GaussianMixture(Model):
    """x ~ N(0, I) in R², o | x ~ ½ N(x1, 1) + ½ N(x1 + x2, 1).

    (x1, x2) and (x1 + x2, -x2) explain the data equally well, so that data from (1, -2) lead to a second mode
    at (-1, 2).
    """

    prior_std: Real = 1.0
    observation_std: Real = 1.0
    dim: int = eqx.field(static=True, default=2, init=False)

    def __check_init__(self):
        checked_scale("prior_std", self.prior_std)
        checked_scale("observation_std", self.observation_std)

    def sample_prior(self, key: Key) -> Point:
        return self.prior_std * jax.random.normal(key, (2,))

    def prior_from_normal(self, z: Point) -> Point:
        return self.prior_std * z

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, 0.0, self.prior_std)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        first = normal_log_density(observation, x[0], self.observation_std)
        second = normal_log_density(observation, x[0] + x[1], self.observation_std)
        return jnp.logaddexp(first, second) - jnp.log(2.0)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        which, noise = jax.random.split(key)
        centre = x[0] + jnp.where(jax.random.bernoulli(which), x[1], 0.0)
        return centre[None] + self.observation_std * jax.random.normal(noise, (1,))
