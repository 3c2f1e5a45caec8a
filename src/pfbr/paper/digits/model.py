"""The logistic regression of the paper's operators, which read the covariates off the observation itself."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.models.base import Model, normal_log_density
from pfbr.typing import Key, Observation, Point, Scalar


class LabelledRows(Model):
    """x ~ N(0, prior_std² I), p(label = 1 | features, x) = σ(features · x); an observation is [features, label].

    The same law as `models.LogisticRegression`, with the covariates inside the observation.
    """

    dim: int = eqx.field(static=True)
    prior_std: float = 1.0

    def sample_prior(self, key: Key) -> Point:
        return self.prior_std * jax.random.normal(key, (self.dim,))

    def prior_from_normal(self, z: Point) -> Point:
        return self.prior_std * z

    def log_prior(self, x: Point) -> Scalar:
        return normal_log_density(x, 0.0, self.prior_std)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        logit = observation[:-1] @ x
        return observation[-1] * logit - jax.nn.softplus(logit)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        """Features from N(0, I), then a label."""
        features_key, label_key = jax.random.split(key)
        features = jax.random.normal(features_key, (self.dim,))
        label = jax.random.bernoulli(label_key, jax.nn.sigmoid(features @ x))
        return jnp.append(features, label.astype(features.dtype))
