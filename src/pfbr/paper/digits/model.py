"""The logistic regression of the paper's operators, which read the covariates off the observation itself."""

import jax
from jax import numpy as jnp

from pfbr.models.logistic_regression import LogisticRegression
from pfbr.typing import Key, Observation, Point, Scalar


class LabelledRows(LogisticRegression):
    """The same law as `LogisticRegression`, with the covariates inside the observation: [features, label]."""

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        return super().log_likelihood(x, observation[-1:], inputs=observation[:-1])

    def sample_observation(self, key: Key, x: Point) -> Observation:
        """Features from N(0, I), then a label."""
        features_key, label_key = jax.random.split(key)
        features = self.sample_inputs(features_key)
        return jnp.append(features, super().sample_observation(label_key, x, inputs=features))
