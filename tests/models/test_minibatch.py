"""A batch is the product of its members, and its posterior does not know that they came together."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.method import Stream
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression, MiniBatch
from pfbr.models.needs import needs

X = jnp.array([0.4, -1.1])


def test_a_batch_is_the_product_of_its_members():
    single, batch = GaussianMixture(), MiniBatch(GaussianMixture(), 4)

    @jax.jit
    def both(key):
        observations = batch.sample_observation(key, X)
        return batch.log_likelihood(X, observations), jax.vmap(lambda o: single.log_likelihood(X, o))(observations)

    together, apart = both(jax.random.key(0))
    np.testing.assert_allclose(together, np.sum(apart), rtol=1e-5)
    assert len(set(np.asarray(apart).tolist())) == 4  # draws of their own
    assert batch.linear_gaussian() is None


def test_inputs_belong_to_the_members():
    single, batch = LogisticRegression(2), MiniBatch(LogisticRegression(2), 3)
    assert needs(batch, "log_likelihood") == ("inputs",)

    @jax.jit
    def both(key):
        inputs = batch.sample_inputs(key)
        labels = batch.sample_observation(key, X, inputs=inputs)
        apart = jax.vmap(lambda o, u: single.log_likelihood(X, o, inputs=u))(labels, inputs)
        return inputs, batch.log_likelihood(X, labels, inputs=inputs), apart

    inputs, together, apart = both(jax.random.key(1))
    assert inputs.shape == (3, 2)
    np.testing.assert_allclose(together, np.sum(apart), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 4])
def test_a_batch_as_one_observation_is_its_members_one_by_one(size, x64):
    """The posterior does not know whether observations came one at a time."""
    single = GaussianMean(3, prior_std=1.3, observation_std=0.7)
    stream = jnp.asarray(np.random.default_rng(0).normal(size=(8, 3)))
    together = jax.jit(lambda s: kalman(MiniBatch(single, size), s))(Stream(stream.reshape(8 // size, size, 3)))
    apart = jax.jit(lambda s: kalman(single, s))(stream)
    for name in ("mean", "cov", "log_evidence"):
        found, expected = getattr(together, name), getattr(apart, name)[size - 1 :: size]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_what_cannot_be_a_batch_is_refused():
    with pytest.raises(InputError, match="dynamics"):
        MiniBatch(LinearDynamics.random(0, 2), 4)
    with pytest.raises(InputError, match="size"):
        MiniBatch(GaussianMixture(), 0)
