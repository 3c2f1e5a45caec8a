"""A later segment of a stream starts from the kernel estimate of the particles at the cut."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp
from weights import operator_of

from pfbr.errors import InputError
from pfbr.inference.method import record
from pfbr.inference.operator import gaussian_operator
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.simulate import simulate
from pfbr.training.priors import kernel_prior
from pfbr.training.segments import segment

MODEL = GaussianMean(2, observation_std=1.0)
OPERATOR = gaussian_operator()
OBSERVATIONS = simulate(jax.random.key(0), MODEL, 9).observations
AT = jnp.array([[0.3, -0.2], [1.0, 1.0], [-0.7, 0.4]])


@eqx.filter_jit
def cut_at(cut):
    """The cut is traced: one compilation serves every value."""
    model, observations = segment(jax.random.key(1), OPERATOR, MODEL, OBSERVATIONS, cut, 3, 64)
    return model, observations, jax.vmap(model.log_prior)(AT)


def test_a_cut_at_zero_starts_from_the_kernel_estimate_of_the_prior():
    _, observations, log_prior = cut_at(jnp.asarray(0))
    init_key = jax.random.split(jax.random.key(1))[0]
    points = OPERATOR.init(init_key, MODEL, 64).particles.points
    np.testing.assert_allclose(log_prior, jax.vmap(kernel_prior(points).log_density)(AT), rtol=1e-5)
    np.testing.assert_array_equal(observations, OBSERVATIONS[:3])


@pytest.mark.parametrize("cut", [1, 3, 6])
def test_a_later_cut_starts_from_the_posterior_there(cut):
    """The exact operator: the prior of the segment has the mean of the posterior, and its covariance plus h²."""
    model, observations, _ = cut_at(jnp.asarray(cut))
    np.testing.assert_array_equal(observations, OBSERVATIONS[cut : cut + 3])
    truth = jax.tree.map(lambda a: a[cut - 1], kalman(MODEL, OBSERVATIONS))
    points = model.prior.particles.points
    np.testing.assert_allclose(jnp.mean(points, 0), truth.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(points.T, ddof=0), truth.cov, atol=0.01)
    assert model.dim == 2
    assert model.log_likelihood(AT[0], AT[1]) == MODEL.log_likelihood(AT[0], AT[1])


def test_the_segment_is_a_task_for_any_operator():
    model, observations, _ = cut_at(jnp.asarray(3))
    particles = record(jax.random.key(2), OPERATOR, model, observations, 512).particles
    expected = kalman(MODEL, OBSERVATIONS[:6]).mean[-1]
    assert np.max(np.abs(jnp.mean(particles.points[-1], 0) - expected)) < 0.15  # its prior is wider by the kernel


def test_no_gradient_reaches_the_operator_before_the_cut():
    operator = operator_of(0, "paper", MODEL, width=4)
    weights, rest = eqx.partition(operator, eqx.is_inexact_array)

    def prior_at(w):
        model, _ = segment(jax.random.key(1), eqx.combine(w, rest), MODEL, OBSERVATIONS, 2, 3, 8)
        return model.log_prior(AT[0])

    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(jax.jit(jax.grad(prior_at))(weights)))


def test_a_model_with_dynamics_needs_no_segments():
    with pytest.raises(InputError, match="dynamics"):
        segment(jax.random.key(0), OPERATOR, LinearDynamics.random(0, 2), jnp.zeros((4, 2)), 0, 2, 8)
