"""How unlike training a step is: free of place and scale, near one for what the reference knows."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.ood import NAMES, ReferenceStatistics, features, reference_of, with_reference
from pfbr.models import GaussianMean

POINTS = jax.random.normal(jax.random.key(0), (64, 2))


def scaled(factor, shift):
    """The same problem in other units."""
    model = GaussianMean(2, prior_std=factor, observation_std=0.5 * factor)
    return features(factor * POINTS + shift, Likelihood(model, jnp.array([0.7, -0.2]) * factor + shift))


def test_neither_place_nor_scale_matters():
    np.testing.assert_allclose(scaled(1.0, 0.0), scaled(1024.0, 0.0), atol=1e-3)
    np.testing.assert_allclose(scaled(1.0, 0.0), scaled(1.0, 8.0), atol=1e-3)


def test_a_gaussian_likelihood_leaves_no_curvature_and_normal_points_few_moments():
    found = dict(zip(NAMES, np.asarray(scaled(1.0, 0.0)), strict=True))
    assert found["curvature left"] == pytest.approx(0.0, abs=1e-4)
    assert found["skewness"] < 0.5


def test_an_operator_carries_its_reference_in_its_provenance():
    known = ReferenceStatistics(jnp.arange(5.0), 2.0 * jnp.eye(5))
    operator = with_reference(pfbr.gaussian_operator(), known)
    back = reference_of(operator)
    np.testing.assert_array_equal(back.mean, known.mean)
    np.testing.assert_array_equal(back.inverse_scale, known.inverse_scale)
    assert reference_of(pfbr.gaussian_operator()) is None


def test_the_distance_is_mahalanobis_over_the_root_of_the_number_of_features():
    likelihood = Likelihood(GaussianMean(2), jnp.zeros(2))
    here = features(POINTS, likelihood)
    assert float(ReferenceStatistics(here, jnp.eye(5)).distance(POINTS, likelihood)) == pytest.approx(0, abs=1e-5)
    away = ReferenceStatistics(here - 3.0, jnp.eye(5))
    assert float(away.distance(POINTS, likelihood)) == pytest.approx(3.0, rel=1e-5)
