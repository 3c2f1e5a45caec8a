"""The training-free operator is the Kalman update where that is exact, and nothing moves without information."""

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import numpy as jnp

import pfbr
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.solve import FlowSettings
from pfbr.flow.velocities import AffineVelocity, ResidualVelocity
from pfbr.inference.method import record
from pfbr.inference.operator import Operator
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, MiniBatch
from pfbr.models.simulate import simulate
from pfbr.particles.particles import equally_weighted
from pfbr.particles.qmc import match_moments
from tests.weights import filled

move = eqx.filter_jit(Operator.move)


@pytest.mark.parametrize(("solver", "steps", "tolerance"), [("heun", 8, 0.03), ("closed-form", 1, 3e-5)])
def test_it_follows_kalman(solver, steps, tolerance):
    """Ten observations in three dimensions, 128 evenly drawn particles: mean and covariance to `tolerance`. In closed
    form one step is enough, and only float32 and the ridge of the frame are left."""
    model = LinearDynamics.random(0, 3)
    observations = simulate(jax.random.key(1), model, 10).observations
    truth = kalman(model, observations)
    particles = record(
        jax.random.key(2), pfbr.gaussian_operator(solver=solver, steps=steps), model, observations, 128
    ).particles
    centred = particles.points - jnp.mean(particles.points, axis=1, keepdims=True)
    np.testing.assert_allclose(jnp.mean(particles.points, axis=1), truth.mean, atol=tolerance)
    np.testing.assert_allclose(jnp.einsum("tni,tnj->tij", centred, centred) / 128, truth.cov, atol=tolerance)


@pytest.mark.parametrize("n", [7, 64])
def test_the_carried_density_is_the_posterior_at_every_particle(n, x64):
    """One update of particles whose moments are the prior's. The ridge of the frame, 1e-6, is all that is left."""
    model = GaussianMean(2, prior_std=1.5, observation_std=0.8)
    points = 1.5 * match_moments(jnp.asarray(np.random.default_rng(0).normal(size=(n, 2))))
    observation = jnp.asarray([2.0, -1.0])
    operator = pfbr.gaussian_operator(solver="tsit5", steps=12)
    prior = equally_weighted(points, jax.vmap(model.log_prior)(points))
    moved = move(operator, jax.random.key(0), prior, Likelihood(model, observation))
    truth = jax.tree.map(lambda a: a[0], kalman(model, observation[None]))
    np.testing.assert_allclose(jnp.mean(moved.points, 0), truth.mean, atol=1e-5)
    np.testing.assert_allclose(np.cov(moved.points.T, ddof=0), truth.cov, atol=1e-5)
    np.testing.assert_allclose(moved.log_density, truth.log_density(moved.points), atol=1e-4)


class Flat(GaussianMean):
    """An observation that says nothing."""

    def log_likelihood(self, x, observation):
        return 0 * jnp.sum(x)


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 2.0))
def test_without_information_nothing_moves(seed, scale):
    points = jnp.asarray(np.random.default_rng(seed).normal(size=(32, 2)), jnp.float32)
    prior = equally_weighted(points, jnp.zeros(32))
    velocity = filled(seed, lambda: ResidualVelocity(jax.random.key(1), 2, width=8, num_features=4), scale)
    for each in (velocity, AffineVelocity()):
        operator = Operator(each, FlowSettings(steps=4))
        moved = move(operator, jax.random.key(0), prior, Likelihood(Flat(2), jnp.ones(2)))
        np.testing.assert_array_equal(moved.points, points)
        np.testing.assert_array_equal(moved.log_density, prior.log_density)


@pytest.mark.parametrize("name", ["gaussian", "residual"])
def test_information_adds(name, x64):
    """At a given set and time, two observations together give the sum of the two velocities, and of the divergences."""
    velocity = AffineVelocity()
    if name == "residual":
        velocity = filled(3, lambda: ResidualVelocity(jax.random.key(0), 2, width=7, num_features=5))
    points = jnp.asarray(np.random.default_rng(0).normal(size=(20, 2)))
    single, first, second = GaussianMixture(), jnp.asarray([0.5]), jnp.asarray([-2.0])
    context = velocity.prepare(jax.random.key(0), points, Likelihood(single, first))

    @eqx.filter_jit
    def at(model, observation):
        return velocity(0.4, points, points, context, Likelihood(model, observation))

    both = at(MiniBatch(single, 2), jnp.stack([first, second]))
    for together, a, b in zip(both, at(single, first), at(single, second), strict=True):
        np.testing.assert_allclose(together, a + b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("std", [1e-2, 1e-4])
def test_a_sharp_observation_is_followed(std):
    """Up to 10⁸ times the prior's precision. The posterior is the observation with its noise, to a hundredth of it."""
    model = GaussianMean(2, observation_std=std)
    observation = jnp.array([1.5, -0.5])
    moved = record(jax.random.key(0), pfbr.gaussian_operator(), model, observation[None], 128).particles
    truth = kalman(model, observation[None])
    assert np.all(np.isfinite(moved.log_density))
    np.testing.assert_allclose(jnp.mean(moved.points[0], 0), truth.mean[0], atol=0.01 * std)
    np.testing.assert_allclose(jnp.std(moved.points[0], axis=0), std, rtol=0.01)


def test_the_evidence_has_a_gradient_in_the_models_parameters(x64):
    """Learning by maximum likelihood; eigenvalues are all equal here, where those of `eigh` have no derivative."""
    points = match_moments(jnp.asarray(np.random.default_rng(0).normal(size=(40, 2))))

    def end(std):
        model = GaussianMean(2, observation_std=std)
        prior = equally_weighted(points, jax.vmap(model.log_prior)(points))
        moved = pfbr.gaussian_operator().move(jax.random.key(0), prior, Likelihood(model, jnp.asarray([2.0, -1.0])))
        return jnp.stack([jnp.mean(moved.points[:, 0]), jnp.mean(moved.log_density)])

    slope = jax.jit(jax.jacrev(end))(0.8)
    run = jax.jit(end)
    np.testing.assert_allclose(slope, (run(0.8 + 1e-5) - run(0.8 - 1e-5)) / 2e-5, rtol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 7, 300])
def test_any_number_of_particles(n):
    """Finite always; from 7 on (moments matched) the posterior's mean."""
    model = GaussianMean(3)
    observations = simulate(jax.random.key(1), model, 3).observations
    moved = record(jax.random.key(0), pfbr.gaussian_operator(), model, observations, n).particles
    assert moved.points.shape == (3, n, 3)
    assert np.all(np.isfinite(moved.points))
    assert np.all(np.isfinite(moved.log_density))
    if n > 7:
        np.testing.assert_allclose(jnp.mean(moved.points, 1), kalman(model, observations).mean, atol=1e-3)
