"""The training-free operator is the Kalman update where that is exact."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.method import record
from pfbr.inference.operator import Operator
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.simulate import simulate
from pfbr.particles.particles import equally_weighted
from pfbr.particles.qmc import match_moments


def kalman_of(model, observations):
    return jax.jit(lambda o: kalman(model, o))(observations)


@pytest.mark.parametrize(("solver", "steps", "tolerance"), [("heun", 8, 0.03), ("closed-form", 1, 3e-5)])
def test_it_follows_kalman(solver, steps, tolerance):
    """Ten observations in three dimensions, 128 evenly drawn particles: mean and covariance to `tolerance`. In closed
    form one step is enough, and only float32 and the ridge of the frame are left."""
    model = LinearDynamics.random(0, 3)
    observations = jax.jit(lambda key: simulate(key, model, 10).observations)(jax.random.key(1))
    truth = kalman_of(model, observations)
    operator = pfbr.gaussian_operator(solver=solver, steps=steps)
    points = np.asarray(record(jax.random.key(2), operator, model, observations, 128).particles.points)
    centred = points - points.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(points.mean(axis=1), truth.mean, atol=tolerance)
    np.testing.assert_allclose(np.einsum("tni,tnj->tij", centred, centred) / 128, truth.cov, atol=tolerance)


def test_the_carried_density_is_the_posterior_at_every_particle(x64):
    """One update of particles whose moments are the prior's. The ridge of the frame, 1e-6, is all that is left."""
    model, observation = GaussianMean(2, prior_std=1.5, observation_std=0.8), jnp.asarray([2.0, -1.0])
    operator = pfbr.gaussian_operator(solver="tsit5", steps=12)

    @jax.jit
    def moved(noise):
        points = 1.5 * match_moments(noise)
        prior = equally_weighted(points, jax.vmap(model.log_prior)(points))
        after = operator.move(jax.random.key(0), prior, Likelihood(model, observation))
        truth = jax.tree.map(lambda a: a[0], kalman(model, observation[None]))
        return after, truth, truth.log_density(after.points)

    after, truth, log_density = moved(jnp.asarray(np.random.default_rng(0).normal(size=(7, 2))))
    np.testing.assert_allclose(np.mean(after.points, 0), truth.mean, atol=1e-5)
    np.testing.assert_allclose(np.cov(after.points.T, ddof=0), truth.cov, atol=1e-5)
    np.testing.assert_allclose(after.log_density, log_density, atol=1e-4)


@pytest.mark.parametrize("std", [1e-2, 1e-4])
def test_a_sharp_observation_is_followed(std):
    """Up to 10⁸ times the prior's precision. The posterior is the observation with its noise, to a hundredth of it."""
    model = GaussianMean(2, observation_std=jnp.asarray(std))  # an array: one compilation for both
    observation = jnp.array([1.5, -0.5])
    moved = record(jax.random.key(0), pfbr.gaussian_operator(), model, observation[None], 128).particles
    mean = np.asarray(observation) / (1 + std**2)
    assert np.all(np.isfinite(moved.log_density))
    np.testing.assert_allclose(np.mean(moved.points[0], 0), mean, atol=0.01 * std)
    np.testing.assert_allclose(np.std(moved.points[0], axis=0), std, rtol=0.01)


def test_the_evidence_has_a_gradient_in_the_models_parameters(x64):
    """Learning by maximum likelihood; eigenvalues are all equal here, where those of `eigh` have no derivative."""
    noise = jnp.asarray(np.random.default_rng(0).normal(size=(40, 2)))

    @jax.jit
    def end(std):
        model, points = GaussianMean(2, observation_std=std), match_moments(noise)
        prior = equally_weighted(points, jax.vmap(model.log_prior)(points))
        moved = pfbr.gaussian_operator().move(jax.random.key(0), prior, Likelihood(model, jnp.asarray([2.0, -1.0])))
        return jnp.stack([jnp.mean(moved.points[:, 0]), jnp.mean(moved.log_density)])

    slope = jax.jit(jax.jacrev(end))(jnp.asarray(0.8))
    numeric = (end(jnp.asarray(0.8 + 1e-5)) - end(jnp.asarray(0.8 - 1e-5))) / 2e-5
    np.testing.assert_allclose(slope, numeric, rtol=1e-5)


@pytest.mark.parametrize("n", [2, 7, 300])
def test_any_number_of_particles(n):
    """Finite always; with enough to match moments, the posterior's mean."""
    model = GaussianMean(3)
    observations = jnp.asarray(np.random.default_rng(1).normal(size=(3, 3)), jnp.float32)
    moved = record(jax.random.key(0), pfbr.gaussian_operator(), model, observations, n).particles
    assert moved.points.shape == (3, n, 3)
    assert np.all(np.isfinite(moved.points))
    assert np.all(np.isfinite(moved.log_density))
    if n > 7:
        np.testing.assert_allclose(np.mean(moved.points, 1), kalman_of(model, observations).mean, atol=1e-3)


def test_an_operator_made_for_another_model_says_so():
    operator = Operator(pfbr.gaussian_operator().velocity, pfbr.gaussian_operator().settings, dim=2)
    assert operator.unsupported(GaussianMean(2)) is None
    assert "dim 3" in operator.unsupported(GaussianMean(3))
    assert operator.unsupported(LinearDynamics.random(0, 2)) is None
    shaped = Operator(operator.velocity, operator.settings, observation_shape=(4,))
    assert "(4,)" in shaped.unsupported(GaussianMean(2))
