"""What a filter asks of a model; what is no number is told, not hidden."""

import jax
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import LikelihoodError
from pfbr.inference.adaptive.filter.model import filter_model, undefined_share
from pfbr.models.conditions import Conditions, bind


class Undefined(pfbr.StateSpaceModel):
    """The log of a state that may be negative."""

    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return -0.5 * x[0] ** 2

    def sample_transition(self, key, x):
        return x + jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        return jnp.where(observation[0] > 5, jnp.log(x[0]), -0.5 * (observation[0] - x[0]) ** 2)


def test_the_share_of_particles_without_a_number_is_told():
    model = filter_model(bind(Undefined(), Conditions(), shape=(1,)))
    points = jnp.array([[-1.0], [2.0], [-3.0], [1.0]])
    assert float(undefined_share(model, points, jnp.array([6.0]), Conditions())) == 0.5
    assert float(undefined_share(model, points, jnp.array([0.3]), Conditions())) == 0.0


@pytest.mark.parametrize("method", [pytest.param("auto", marks=pytest.mark.slow), "smc"])
def test_a_likelihood_that_is_no_number_is_refused_and_changes_nothing(method):
    session = pfbr.Session(Undefined(), method=method, num_particles=64)
    session.update([0.3])
    with pytest.raises(LikelihoodError, match="NaN at"):
        session.update([6.0])
    assert session.stage == 1
