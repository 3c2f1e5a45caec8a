"""The mean of a Gaussian, seen through noise: the problem whose answer is known in closed form."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.checks import checked_count, checked_scale
from pfbr.models.base import LinearGaussian, Model, normal_log_density
from pfbr.typing import Key, Observation, Point, Real, Scalar


class GaussianMean(Model):
    """x ~ N(0, prior_std² I), o | x ~ N(x, observation_std² I).

    The paper writes Σ_o = 3 I; its figures come from a standard deviation of 3, which is the default here.
    """

    dim: int = eqx.field(static=True)
    prior_std: Real = 1.0
    observation_std: Real = 3.0

    def __check_init__(self):
        checked_count("dim", self.dim, least=1)
        checked_scale("prior_std", self.prior_std)
        checked_scale("observation_std", self.observation_std)

    def sample_prior(self, key: Key) -> Point:
        return self.prior_std * jax.random.normal(key, (self.dim,))

    def prior_from_normal(self, z: Point) -> Point:
        return self.prior_std * z

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, 0.0, self.prior_std)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        return normal_log_density(observation, x, self.observation_std)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        return x + self.observation_std * jax.random.normal(key, (self.dim,))

    def linear_gaussian(self) -> LinearGaussian:
        eye = jnp.eye(self.dim)
        return LinearGaussian(
            A=eye,
            Q=0 * eye,
            B=eye,
            R=self.observation_std**2 * eye,
            mean=jnp.zeros(self.dim),
            cov=self.prior_std**2 * eye,
        )
