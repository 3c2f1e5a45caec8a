"""To observe under the inverse likelihood is to forget."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.models import GaussianMean, LinearDynamics, LogisticRegression
from pfbr.models.conditions import Conditions, bind
from pfbr.models.inverse_likelihood import InverseLikelihood
from pfbr.models.needs import needs


def test_only_the_likelihood_changes_its_sign():
    model, x, o = GaussianMean(2), jnp.array([0.3, -1.0]), jnp.array([1.0, 2.0])
    inverse = InverseLikelihood(model)
    assert inverse.dim == 2
    np.testing.assert_array_equal(inverse.log_likelihood(x, o), -model.log_likelihood(x, o))
    np.testing.assert_array_equal(inverse.log_prior(x), model.log_prior(x))
    key = jax.random.key(0)
    np.testing.assert_array_equal(inverse.sample_prior(key), model.sample_prior(key))


def test_what_the_model_asks_for_is_passed_on():
    model, x, u = LogisticRegression(2), jnp.array([0.3, -1.0]), jnp.array([1.0, 2.0])
    inverse = InverseLikelihood(model)
    assert needs(inverse, "log_likelihood") == ("inputs",)
    bound = bind(inverse, Conditions(inputs=u))
    expected = -model.log_likelihood(x, jnp.ones(1), inputs=u)
    np.testing.assert_allclose(bound.log_likelihood(x, jnp.ones(1)), expected, rtol=1e-6)


def test_a_moving_unknown_cannot_be_downdated():
    with pytest.raises(InputError, match="does not move"):
        InverseLikelihood(LinearDynamics.random(0, 2))
