"""A later segment of a stream starts from the kernel estimate of the particles at the cut."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.method import record, step_key
from pfbr.inference.operator import gaussian_operator
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics, LogisticRegression
from pfbr.particles.mixtures import KernelDensity
from pfbr.training.segments import run_to, segment
from pfbr.training.tasks import ModelFamily
from tests.weights import operator_of

KEY = jax.random.key(1)
MODEL = GaussianMean(2, observation_std=1.0)


@pytest.fixture(scope="module")
def task():
    return jax.jit(lambda key: ModelFamily(MODEL).sample(key, 9))(jax.random.key(0))


@pytest.fixture(scope="module")
def points():
    return jnp.array([[0.3, -0.2], [1.0, 1.0], [-0.7, 0.4]])


@eqx.filter_jit
def cut_at(task, cut, points):
    """The cut is traced: one compilation serves every value."""
    cut_off = segment(KEY, gaussian_operator(), task, cut, 3, 64)
    return cut_off, jax.vmap(cut_off.model.log_prior)(points)


def test_a_cut_at_zero_starts_from_the_kernel_estimate_of_the_prior(task, points):
    cut_off, log_prior = cut_at(task, jnp.asarray(0), points)

    @jax.jit
    def expected():
        start = gaussian_operator().init(step_key(KEY, 0), MODEL, 64).points
        return jax.vmap(KernelDensity.of(start).log_density)(points)

    np.testing.assert_allclose(log_prior, expected(), rtol=1e-5)
    np.testing.assert_array_equal(cut_off.observations, task.observations[:3])


def test_a_later_cut_starts_from_the_posterior_there(task, points):
    """The exact operator: the prior of the segment has the mean of the posterior, and its covariance plus h²."""
    truths = jax.jit(lambda o: kalman(MODEL, o))(task.observations)
    for cut in (1, 3, 6):
        cut_off, _ = cut_at(task, jnp.asarray(cut), points)
        np.testing.assert_array_equal(cut_off.observations, task.observations[cut : cut + 3])
        np.testing.assert_array_equal(cut_off.truths, task.truths[cut : cut + 3])
        kept = np.asarray(cut_off.model.prior.particles.points)
        np.testing.assert_allclose(kept.mean(0), truths.mean[cut - 1], atol=0.01)
        np.testing.assert_allclose(np.cov(kept.T, ddof=0), truths.cov[cut - 1], atol=0.01)
        assert cut_off.model.dim == 2
        assert cut_off.model.log_likelihood(points[0], points[1]) == MODEL.log_likelihood(points[0], points[1])


def test_the_particles_at_a_cut_are_those_of_a_recorded_stream(task):
    """One key protocol: running to the cut is the beginning of running through."""
    said = record(KEY, gaussian_operator(), MODEL, task.stream, 64).particles
    there = eqx.filter_jit(run_to)(KEY, gaussian_operator(), task, jnp.asarray(4), 64)
    np.testing.assert_allclose(there.points, said.points[3], rtol=1e-5, atol=1e-6)


def test_the_segment_is_a_task_for_any_operator(task, points):
    cut_off, _ = cut_at(task, jnp.asarray(3), points)
    particles = record(jax.random.key(2), gaussian_operator(), cut_off.model, cut_off.stream, 512).particles
    expected = jax.jit(lambda o: kalman(MODEL, o))(task.observations).mean[5]
    # its prior is wider by the kernel
    assert np.max(np.abs(np.mean(particles.points[-1], 0) - expected)) < 0.15


def test_inputs_are_cut_with_the_stream():
    model = LogisticRegression(2)
    task = eqx.filter_eval_shape(lambda: ModelFamily(model).sample(KEY, 9))
    cut_off = eqx.filter_eval_shape(lambda t: segment(KEY, gaussian_operator(), t, 2, 3, 8), task)
    assert cut_off.inputs.shape == (3, 2)
    assert cut_off.observations.shape == (3, 1)


def test_no_gradient_reaches_the_operator_before_the_cut(task, points):
    weights, rest = eqx.partition(operator_of(0, "paper", MODEL, width=4), eqx.is_inexact_array)

    def prior_at(w):
        return segment(KEY, eqx.combine(w, rest), task, 2, 3, 8).model.log_prior(points[0])

    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(jax.jit(jax.grad(prior_at))(weights)))


def test_a_model_with_dynamics_needs_no_segments():
    model = LinearDynamics.random(0, 2)
    task = eqx.filter_eval_shape(lambda: ModelFamily(model).sample(KEY, 4))
    with pytest.raises(InputError, match="dynamics"):
        segment(KEY, gaussian_operator(), eqx.tree_at(lambda t: t.model, task, model), 0, 2, 8)
