"""A model with another prior: that prior on both scales, everything else its own."""

from typing import ClassVar

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.models import LinearDynamics, LogisticRegression
from pfbr.models.base import offers
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs
from pfbr.models.replaced_prior import ReplacedPrior, ReplacedPriorOfState, with_prior
from pfbr.particles.fitted_density import FittedDensity

SYSTEM = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0]])
PRIOR = FittedDensity.of(np.ones(1), np.array([[3.0, -1.0]]), np.array([[[2.0, 0.0], [0.5, 0.1]]]))
TWO = FittedDensity.of(np.full(2, 0.5), np.zeros((2, 2)), np.eye(2)[None])


class Scale(pfbr.Model):
    unknowns: ClassVar = {"mu": (), "sigma": pfbr.interval(0.0, 1.0)}

    def sample_prior(self, key):
        return {"mu": jnp.zeros(()), "sigma": jnp.full((), 0.5)}

    def log_prior(self, x):
        return jnp.zeros(())

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x["mu"], x["sigma"])


def test_a_linear_gaussian_model_stays_one_with_a_gaussian_prior():
    model = with_prior(SYSTEM, PRIOR)
    assert isinstance(model, ReplacedPriorOfState)
    system = model.linear_gaussian()
    np.testing.assert_allclose(system.mean, [3.0, -1.0])
    np.testing.assert_allclose(system.cov, [[4.0, 1.0], [1.0, 0.26]], rtol=1e-5)
    np.testing.assert_array_equal(system.A, SYSTEM.A)
    assert with_prior(SYSTEM, TWO).linear_gaussian() is None
    x, y = jnp.array([0.2, 0.1]), jnp.array([0.5])
    assert model.log_likelihood(x, y) == SYSTEM.log_likelihood(x, y)
    assert model.log_transition(x, x) == SYSTEM.log_transition(x, x)
    assert offers(model, "transition_from_normal")
    assert not offers(model, "prior_from_normal")


def test_what_the_model_asks_for_is_passed_on():
    model = with_prior(LogisticRegression(2), PRIOR)
    assert type(model) is ReplacedPrior
    assert "inputs" in all_needs(model)
    bound = bind(model, Conditions(inputs=jnp.ones(2)))
    own = bind(LogisticRegression(2), Conditions(inputs=jnp.ones(2)))
    np.testing.assert_allclose(
        bound.log_likelihood(jnp.ones(2), jnp.ones(1)), own.log_likelihood(jnp.ones(2), jnp.ones(1))
    )


def test_the_density_is_that_of_the_free_numbers_with_the_jacobian_on_the_users_scale():
    model = with_prior(Scale(), PRIOR)
    bound, x = bind(model, Conditions()), jnp.array([2.5, -0.8])
    assert bound.log_prior(x) == PRIOR.log_density(x)
    named = {"mu": x[0], "sigma": jax.nn.sigmoid(x[1])}
    slope = jax.grad(jax.nn.sigmoid)(x[1])
    np.testing.assert_allclose(model.log_prior(named), PRIOR.log_density(x) - jnp.log(slope), rtol=1e-4)
    drawn = model.sample_prior(jax.random.key(0))
    np.testing.assert_allclose(drawn["mu"], bound.sample_prior(jax.random.key(0))[0])
    far = jnp.array([0.0, 40.0])  # there and back through the interval, 40 would be infinite
    assert np.isfinite(bound.log_prior(far))
