"""Short streams that begin late: the prior is the exact posterior after some earlier observations of a Gaussian mean.

The paper trains on ten observations and tests on a hundred. Its operator sees particle sets as narrow as those at the
end of the test only because training segments start from posteriors after up to ninety earlier observations.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.models import GaussianMean
from pfbr.models.base import LinearGaussian, normal_log_density
from pfbr.models.simulate import simulate
from pfbr.training.tasks import Family, Task
from pfbr.typing import Key, Point, Scalar


class LateGaussianMean(GaussianMean):
    """x ~ N(mean, prior_std² I), o | x ~ N(x, observation_std² I)."""

    prior_std: Scalar = eqx.field(kw_only=True)  # type: ignore[assignment]
    mean: Point = eqx.field(kw_only=True)

    def sample_prior(self, key: Key) -> Point:
        return self.mean + super().sample_prior(key)

    def prior_from_normal(self, z: Point) -> Point:
        return self.mean + super().prior_from_normal(z)

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, self.mean, self.prior_std)

    def linear_gaussian(self) -> LinearGaussian:
        return super().linear_gaussian()._replace(mean=self.mean)


class LateStarts(Family):
    """Tasks that begin after 0 … `latest` earlier observations, each number as likely as the others."""

    model: GaussianMean
    latest: int = eqx.field(static=True, default=90)

    def sample(self, key: Key, length: int) -> Task:
        count_key, mean_key, stream_key = jax.random.split(key, 3)
        dim, prior_std, observation_std = self.model.dim, self.model.prior_std, self.model.observation_std
        seen = jax.random.randint(count_key, (), 0, self.latest + 1)
        variance = 1.0 / (1.0 / prior_std**2 + seen / observation_std**2)
        # over all streams the posterior means after `seen` observations spread by what the variance has lost
        spread = jnp.sqrt(jnp.maximum(prior_std**2 - variance, 0.0))
        mean = spread * jax.random.normal(mean_key, (dim,))
        late = LateGaussianMean(dim, observation_std=observation_std, prior_std=jnp.sqrt(variance), mean=mean)
        drawn = simulate(stream_key, late, length)
        return Task(late, drawn.observations, drawn.truths)
