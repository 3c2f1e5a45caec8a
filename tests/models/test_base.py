"""What a user writes is enough: the methods that are not there say what they are needed for."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

import pfbr
from pfbr.errors import ModelError
from pfbr.models import GaussianMean, LinearDynamics, MiniBatch, has_observations, observation_shape
from pfbr.models.base import has_parameters, normal_log_densities, normal_log_density, offers
from pfbr.models.inverse_likelihood import InverseLikelihood


class Own(pfbr.Model):
    """As a user writes it: a plain field for the dimension, and no sampler of observations."""

    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (self.dim,))

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x))

    def log_likelihood(self, x, observation):
        return jnp.sum(jax.scipy.stats.norm.logpdf(observation, x, 0.5))


class Moving(Own, pfbr.StateSpaceModel):
    def sample_transition(self, key, x):
        return x + jax.random.normal(key, x.shape)


class WithParameters(Moving):
    def sample_parameters(self, key):
        return jax.random.normal(key)

    def log_parameters(self, params):
        return normal_log_density(params[None], 0.0, 1.0)


class Named(pfbr.Model):
    unknowns = {"slope": (2,), "noise": pfbr.positive}  # noqa: RUF012

    def sample_prior(self, key):
        return {"slope": jax.random.normal(key, (2,)), "noise": jnp.ones(())}

    def log_prior(self, x):
        return normal_log_density(x["slope"], 0.0, 1.0)

    def log_likelihood(self, x, observation):
        return normal_log_density(observation, x["slope"], x["noise"])


def test_a_users_own_class_is_enough_to_update():
    """x ~ N(0, 1), o | x ~ N(x, ¼): after o = 1 the mean is 4/5 and the variance 1/5."""
    assert observation_shape(Own()) is None
    assert not has_observations(Own())
    posterior = pfbr.Session(Own(), method="gaussian", num_particles=4096).update([1.0])
    assert abs(posterior.mean()[0] - 0.8) < 6 * np.sqrt(0.2 / 4096)  # its prior is drawn i.i.d.: z = 6
    assert abs(posterior.cov()[0, 0] / 0.2 - 1) < 6 * np.sqrt(2 / 4096)


def test_what_is_not_written_says_what_it_is_needed_for():
    key, x = jax.random.key(0), jnp.zeros(1)
    for call, word in (
        (lambda: Own().sample_observation(key, x), "sample_observation"),
        (lambda: Own().sample_inputs(key), "sample_inputs"),
        (lambda: Moving().log_transition(x, x), "log_transition"),
        (lambda: Moving().sample_parameters(key), "sample_parameters"),
        (lambda: Moving().log_parameters(x), "log_parameters"),
    ):
        with pytest.raises(ModelError, match=f"`{word}"):
            call()
    assert Own().prior_from_normal(x) is None
    assert Own().linear_gaussian() is None
    assert Moving().transition_from_normal(x, x) is None
    assert Moving().transition_mean_and_std(x) is None
    assert float(Own().sample_dt(key)) == 1.0


def test_a_model_offers_what_it_wrote_itself():
    assert offers(GaussianMean(2), "sample_observation")
    assert offers(LinearDynamics.random(0, 2), "log_transition")
    assert not offers(Moving(), "log_transition")
    assert not has_parameters(Moving())
    assert not has_parameters(Own())
    assert has_parameters(WithParameters())


def test_a_model_around_another_offers_what_both_wrote():
    assert offers(MiniBatch(GaussianMean(2), 3), "sample_observation")
    assert not offers(MiniBatch(Own(), 3), "sample_observation")
    assert not offers(InverseLikelihood(GaussianMean(2)), "sample_observation")


def test_named_unknowns_have_a_dim():
    assert Named().dim == 3
    assert Named.unknowns["slope"] == (2,)
    assert jax.tree.leaves(Named()) == []  # a declaration, not a leaf


def test_an_unfinished_model_cannot_be_made():
    class Unfinished(pfbr.Model):
        dim: int = eqx.field(static=True, default=1)

    with pytest.raises(TypeError, match="log_likelihood"):
        Unfinished()


def test_densities_of_normals_are_scipys():
    x, mean, std = np.array([[0.3, -2.0], [1.0, 4.0]]), np.array([0.1, 0.2]), np.array([0.5, 2.0])
    each = scipy.stats.norm.logpdf(x, mean, std)
    found = jax.jit(normal_log_densities)(jnp.asarray(x), jnp.asarray(mean), jnp.asarray(std))
    np.testing.assert_allclose(found, each, rtol=1e-5)
    summed = jax.jit(normal_log_density)(jnp.asarray(x), jnp.asarray(mean), jnp.asarray(std))
    np.testing.assert_allclose(summed, each.sum(-1), rtol=1e-5)
