"""Weights are normalised, and moments under them are those of NumPy."""

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jax import numpy as jnp

from pfbr.particles.particles import Particles, equally_weighted, ess, normalise, weighted_cov, weighted_mean


@jax.jit
def summary(points, log_weights):
    particles = Particles(points, normalise(log_weights))
    return particles.log_weights, weighted_mean(particles), weighted_cov(particles), ess(log_weights)


@given(seed=st.integers(0, 999), shift=st.floats(-500, 500))
def test_moments_are_numpys(seed, shift):
    """Log weights mean the same up to a constant, however large: nothing overflows."""
    rng = np.random.default_rng(seed)
    points, log_weights = rng.normal(size=(12, 3)), 2 * rng.normal(size=12)
    log_w, mean, cov, size = summary(jnp.asarray(points), jnp.asarray(log_weights + shift))
    w = np.exp(log_weights) / np.exp(log_weights).sum()
    np.testing.assert_allclose(np.exp(log_w), w, rtol=2e-3)  # float32 holds 500 to 3e-5, whose exponential is that off
    np.testing.assert_allclose(mean, w @ points, atol=2e-3)
    np.testing.assert_allclose(cov, np.cov(points.T, aweights=w, ddof=1), rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(size, 1 / np.sum(w**2), rtol=2e-3)


def test_log_weights_are_normalised():
    assert abs(float(jnp.sum(jnp.exp(normalise(jnp.array([1.0, 2.0, -800.0]))))) - 1) < 1e-6
    assert np.isneginf(normalise(jnp.array([0.0, -jnp.inf]))[1])


def test_equal_weights_are_one_over_n_and_their_covariance_is_unbiased():
    points = np.random.default_rng(0).normal(size=(9, 2))
    particles = equally_weighted(jnp.asarray(points))
    assert particles.num_particles == 9
    np.testing.assert_allclose(np.exp(particles.log_weights), 1 / 9, rtol=1e-6)
    cov, size = jax.jit(lambda p: (weighted_cov(p), ess(p.log_weights)))(particles)
    np.testing.assert_allclose(cov, np.cov(points.T, ddof=1), rtol=1e-4)
    assert abs(float(size) - 9) < 1e-4


def test_one_particle_that_has_all_the_weight_counts_as_one():
    alone = jnp.array([-jnp.inf, 0.0, -jnp.inf])
    log_weights, mean, cov, size = summary(jnp.eye(3), alone)
    assert float(size) == 1.0
    np.testing.assert_array_equal(log_weights, alone)
    np.testing.assert_array_equal(mean, [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(cov, np.zeros((3, 3)))
