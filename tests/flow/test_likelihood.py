"""One observation as a function on the unknown, with its score."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.likelihood import Likelihood
from pfbr.models import GaussianMean, LogisticRegression
from pfbr.models.conditions import Conditions, bind


def test_values_and_scores_are_those_of_the_formula():
    x, o = np.random.default_rng(0).normal(size=(7, 2)), np.array([1.0, -2.0])
    likelihood = Likelihood(GaussianMean(2, observation_std=0.5), jnp.asarray(o))
    values, scores = jax.jit(lambda p: likelihood.values_and_scores(p))(jnp.asarray(x))
    expected = -0.5 * ((o - x) ** 2).sum(1) / 0.25 - 2 * np.log(0.5) - np.log(2 * np.pi)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores, (o - x) / 0.25, rtol=1e-4, atol=1e-5)


def test_conditions_come_with_the_model():
    x, u = jnp.asarray(np.random.default_rng(1).normal(size=(5, 2))), np.array([2.0, -1.0])
    likelihood = Likelihood(bind(LogisticRegression(2), Conditions(inputs=jnp.asarray(u))), jnp.ones(1))
    values, scores = jax.jit(lambda p: (likelihood.values(p), likelihood.scores(p)))(x)
    share = 1 / (1 + np.exp(-np.asarray(x) @ u))
    np.testing.assert_allclose(values, np.log(share), rtol=1e-4)
    np.testing.assert_allclose(scores, (1 - share)[:, None] * u, rtol=1e-4, atol=1e-6)
