"""Reference statistics: steps like those seen are about one away, others far."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import ModelError
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.ood import NAMES, features, reference_of, with_reference
from pfbr.models import GaussianMean
from pfbr.training.reference import learn_reference_statistics

MODEL = GaussianMean(2, observation_std=1.0)


@pytest.fixture(scope="module")
def reference():
    operator = pfbr.gaussian_operator(solver="heun", steps=2)
    return learn_reference_statistics(jax.random.key(0), operator, MODEL, num_particles=32, length=5, streams=32)


def test_steps_like_those_seen_are_near_and_others_far(reference):
    prior = jax.random.normal(jax.random.key(1), (32, 2))
    distance = jax.jit(lambda o: reference.distance(prior, Likelihood(MODEL, o)))
    usual = [float(distance(o)) for o in np.asarray(jax.random.normal(jax.random.key(2), (20, 2)), np.float32)]
    assert np.median(usual) < 2
    assert float(distance(jnp.array([3e4, -3e4]))) > 5


def test_they_are_those_of_the_features(reference):
    assert reference.mean.shape == (len(NAMES),)
    assert reference.inverse_scale.shape == (len(NAMES), len(NAMES))
    prior = jax.random.normal(jax.random.key(1), (32, 2))
    seen = jax.jit(lambda p: features(p, Likelihood(MODEL, jnp.ones(2))))(prior)
    assert abs(float(seen[2])) < 1e-3  # a Gaussian likelihood leaves no curvature


def test_they_travel_in_the_provenance(reference):
    operator = pfbr.gaussian_operator()
    assert reference_of(operator) is None
    told = reference_of(with_reference(operator, reference))
    np.testing.assert_allclose(told.mean, reference.mean, rtol=1e-6)
    np.testing.assert_allclose(told.inverse_scale, reference.inverse_scale, rtol=1e-6)


def test_a_model_that_draws_no_observations_has_none():
    class Mute(GaussianMean):
        sample_observation = pfbr.Model.sample_observation

    with pytest.raises(ModelError, match="sample_observation"):
        learn_reference_statistics(jax.random.key(0), pfbr.gaussian_operator(), Mute(2))
