"""Two classes and a weight vector: logistic regression, one label at a time, its covariates as inputs."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from pfbr.checks import checked_count, checked_scale
from pfbr.models.base import Model, normal_log_density
from pfbr.typing import Key, Observation, Point, Real, Scalar


class LogisticRegression(Model):
    """x ~ N(0, prior_std² I), p(label = 1 | covariates, x) = σ(covariates · x).

    An observation is [label], 0 or 1; its `inputs` are the covariates (d,).
    """

    dim: int = eqx.field(static=True)
    prior_std: Real = 1.0

    def __check_init__(self):
        checked_count("dim", self.dim, least=1)
        checked_scale("prior_std", self.prior_std)

    def sample_prior(self, key: Key) -> Point:
        return self.prior_std * jax.random.normal(key, (self.dim,))

    def prior_from_normal(self, z: Point) -> Point:
        return self.prior_std * z

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, 0.0, self.prior_std)

    def log_likelihood(self, x: Point, observation: Observation, *, inputs: Float[Array, " d"]) -> Scalar:
        logit = inputs @ x
        return observation[0] * logit - jax.nn.softplus(logit)

    def sample_observation(self, key: Key, x: Point, *, inputs: Float[Array, " d"]) -> Observation:
        label = jax.random.bernoulli(key, jax.nn.sigmoid(inputs @ x))
        return label.astype(x.dtype)[None]

    def sample_inputs(self, key: Key) -> Float[Array, " d"]:
        """Covariates from N(0, I)."""
        return jax.random.normal(key, (self.dim,))
