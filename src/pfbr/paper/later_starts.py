"""Short streams that begin late: the prior is the exact posterior after some earlier observations of a Gaussian mean.

The paper trains on ten observations and tests on a hundred. Its operator sees particle sets as narrow as those at the
end of the test only because training segments start from posteriors after up to ninety earlier observations.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.models import GaussianMean, Model
from pfbr.models.base import LinearGaussian, normal_log_density
from pfbr.models.simulate import simulate
from pfbr.training.tasks import Family, Task
from pfbr.typing import Key, Observation, Point, Scalar


class LateGaussianMean(Model):
    """x ~ N(mean, std² I), o | x ~ N(x, observation_std² I)."""

    dim: int = eqx.field(static=True)
    mean: Float[Array, " d"]
    std: Float[Array, ""]
    observation_std: float

    def sample_prior(self, key: Key) -> Point:
        return self.prior_from_normal(jax.random.normal(key, (self.dim,)))

    def prior_from_normal(self, z: Point) -> Point:
        return self.mean + self.std * z

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, self.mean, self.std)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        return normal_log_density(observation, x, self.observation_std)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        return x + self.observation_std * jax.random.normal(key, (self.dim,))

    def linear_gaussian(self) -> LinearGaussian:
        eye = jnp.eye(self.dim)
        return LinearGaussian(
            A=eye, Q=0 * eye, B=eye, R=self.observation_std**2 * eye, mean=self.mean, cov=self.std**2 * eye
        )


class LateStarts(Family):
    """Tasks that begin after 0 … `latest` earlier observations, each number as likely as the others."""

    model: GaussianMean
    latest: int = eqx.field(static=True, default=90)

    def sample(self, key: Key, length: int) -> Task:
        count_key, mean_key, stream_key = jax.random.split(key, 3)
        prior_std, observation_std = self.model.prior_std, self.model.observation_std
        seen = jax.random.randint(count_key, (), 0, self.latest + 1)
        variance = 1.0 / (1.0 / prior_std**2 + seen / observation_std**2)
        # over all streams the posterior means after `seen` observations spread by what the variance has lost
        spread = jnp.sqrt(jnp.maximum(prior_std**2 - variance, 0.0))
        mean = spread * jax.random.normal(mean_key, (self.model.dim,))
        late = LateGaussianMean(self.model.dim, mean, jnp.sqrt(variance), observation_std)
        observations, truths = simulate(stream_key, late, length)
        return Task(late, observations, truths)
