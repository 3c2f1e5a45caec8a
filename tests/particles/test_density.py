"""The kernel estimate of a density is that of SciPy, with weights too."""

import jax
import numpy as np
import scipy.special
import scipy.stats
from jax import numpy as jnp

from pfbr.particles.density import kde_log_density, kde_sample, silverman, squared_distances
from pfbr.particles.particles import Particles, equally_weighted, normalise

POINTS = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 3.0]
AT = np.random.default_rng(1).normal(size=(7, 2)) * [2.0, 5.0]
LOG_WEIGHTS = np.random.default_rng(2).normal(size=30)
bandwidth_of, density, distances = jax.jit(silverman), jax.jit(kde_log_density), jax.jit(squared_distances)


def test_the_bandwidth_is_silvermans():
    bandwidth = bandwidth_of(equally_weighted(jnp.asarray(POINTS)))
    np.testing.assert_allclose(bandwidth, POINTS.std(0, ddof=1) * 30 ** (-1 / 6), rtol=1e-5)
    identical = bandwidth_of(equally_weighted(jnp.ones((30, 2))))
    assert np.all(np.isfinite(identical) & (np.asarray(identical) > 0))


def test_the_density_is_a_weighted_sum_of_normals():
    weights = np.exp(LOG_WEIGHTS) / np.exp(LOG_WEIGHTS).sum()
    particles = Particles(jnp.asarray(POINTS), normalise(jnp.asarray(LOG_WEIGHTS)))
    bandwidth = bandwidth_of(particles)
    n = 1 / np.sum(weights**2)
    spread = np.sqrt(np.diagonal(np.cov(POINTS.T, aweights=weights, ddof=1)))
    np.testing.assert_allclose(bandwidth, spread * n ** (-1 / 6), rtol=1e-4)
    kernels = scipy.stats.norm.logpdf(AT[:, None], POINTS[None], np.asarray(bandwidth)).sum(-1)
    expected = scipy.special.logsumexp(kernels, b=weights, axis=1)
    np.testing.assert_allclose(density(particles, bandwidth, jnp.asarray(AT)), expected, rtol=1e-4, atol=1e-4)


def test_draws_have_the_moments_of_the_estimate():
    """20,000 draws, z = 6: the particles' covariance plus the kernel's."""
    particles = Particles(jnp.asarray(POINTS), normalise(jnp.asarray(LOG_WEIGHTS)))
    bandwidth = jnp.array([0.5, 0.2])
    draws = np.asarray(jax.jit(kde_sample, static_argnums=3)(jax.random.key(0), particles, bandwidth, 20_000))
    weights = np.exp(LOG_WEIGHTS) / np.exp(LOG_WEIGHTS).sum()
    cov = np.cov(POINTS.T, aweights=weights, ddof=0) + np.diag([0.25, 0.04])
    np.testing.assert_allclose(draws.mean(0), weights @ POINTS, atol=6 * np.sqrt(cov.max() / 20_000))
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=6 * np.sqrt(3 / 20_000) * cov.max())


def test_distances_keep_their_digits_far_from_zero():
    """The naive ‖a‖² + ‖b‖² − 2 a·b has no correct digit here."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(6, 3))
    found = distances(jnp.asarray(a + 1000.0), jnp.asarray(b + 1000.0))
    np.testing.assert_allclose(found, ((a[:, None] - b[None]) ** 2).sum(-1), rtol=5e-3)
    assert np.all(np.asarray(distances(jnp.ones((5, 3)), jnp.ones((6, 3)))) == 0)
