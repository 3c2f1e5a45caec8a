"""Scores agree with SciPy, and their stated errors are their spread."""

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.metrics.integral_discrepancy import integral_discrepancy, random_functions
from pfbr.metrics.scores import (
    coverage,
    cross_entropy,
    cross_entropy_estimate,
    mean_error,
    sliced_wasserstein,
    wasserstein_1d,
    weighted_quantiles,
)
from pfbr.metrics.truth import GaussianTruth
from pfbr.particles.particles import Particles, equally_weighted, normalise


def test_the_stated_error_of_cross_entropy_is_its_spread():
    """Over 200 sets of true draws for one set of particles; 5 % accuracy, so that 1.3 is five of these."""
    particles = equally_weighted(jax.random.normal(jax.random.key(0), (128, 3)))
    draws = jax.random.normal(jax.random.key(2), (200, 200, 3))
    values, errors = jax.jit(jax.vmap(lambda d: cross_entropy_estimate(particles, d)))(draws)
    assert 1 / 1.3 < np.mean(errors) / np.std(values) < 1.3


def test_weights_count_as_copies_do():
    """Cross entropy needs the same bandwidth on both sides, so MMD, Wasserstein and integrals are asked here."""
    points = jax.random.normal(jax.random.key(0), (8, 2))
    copies = jnp.array([1, 3, 0, 2, 1, 1, 0, 0])  # eight in all, so that both sets have one shape
    weighted = Particles(points, normalise(jnp.log(copies + 1e-30)))
    copied = equally_weighted(jnp.repeat(points, copies, axis=0))
    truth = GaussianTruth(jnp.zeros(2), jnp.eye(2), jnp.zeros(()))
    draws = truth.sample(jax.random.key(1), 50)
    key = jax.random.key(2)

    @jax.jit
    def judged(particles):
        functions = random_functions(key, 2).values()
        integrals = [integral_discrepancy(particles, function, truth).value for function in functions]
        return jnp.stack([sliced_wasserstein(key, particles, draws).value, *integrals])

    np.testing.assert_allclose(judged(weighted), judged(copied), rtol=1e-4)


def test_wasserstein_is_scipys():
    rng = np.random.default_rng(2)
    a, w, b = rng.normal(size=20), rng.uniform(size=20), rng.normal(0.3, 2.0, size=31)
    theirs = scipy.stats.wasserstein_distance(a, b, u_weights=w)
    ours = jax.jit(wasserstein_1d)(jnp.asarray(a), jnp.asarray(w / w.sum()), jnp.asarray(b))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_cross_entropy_is_scipys_kernel_density():
    """A diagonal bandwidth is SciPy's kernel density of the standardised data, up to the scales."""
    points = np.random.default_rng(3).normal(size=(40, 2)) * [1.0, 3.0]
    draws = np.random.default_rng(4).normal(size=(30, 2)) * [1.0, 3.0]
    scale = points.std(axis=0, ddof=1)
    h = (4 / 4) ** (1 / 6) * 40 ** (-1 / 6) * scale
    kernels = scipy.stats.norm.logpdf(draws[:, None], points[None], h).sum(-1)
    theirs = -np.mean(scipy.special.logsumexp(kernels, axis=1) - np.log(40))
    got = jax.jit(cross_entropy)(equally_weighted(jnp.asarray(points)), jnp.asarray(draws))
    np.testing.assert_allclose(got, theirs, rtol=1e-4)


def test_coverage_of_a_standard_normal():
    points = jax.random.normal(jax.random.key(0), (4000, 1))
    draws = jax.random.normal(jax.random.key(1), (4000, 1))
    value, error = jax.jit(coverage, static_argnums=2)(equally_weighted(points), draws, 0.8)
    assert abs(value - 0.8) < 5 * np.sqrt(2) * error  # both samples are random: z = 5


def test_quantiles_are_hazens_and_weights_count_as_copies_do():
    values = np.random.default_rng(0).normal(size=30)
    at = np.array([0.05, 0.3, 0.5, 0.9])
    equal = jax.jit(weighted_quantiles)(jnp.asarray(values), jnp.full(30, 1 / 30), jnp.asarray(at))
    np.testing.assert_allclose(equal, np.quantile(values, at, method="hazen"), rtol=1e-4, atol=1e-5)


def test_the_error_of_a_mean_is_a_distance():
    particles = Particles(jnp.array([[0.0, 0.0], [6.0, 8.0]]), jnp.log(jnp.array([0.5, 0.5])))
    assert abs(float(mean_error(particles, jnp.zeros(2))) - 5.0) < 1e-5


def test_a_level_that_is_none_is_refused():
    with pytest.raises(InputError, match="level"):
        coverage(equally_weighted(jnp.zeros((4, 2))), jnp.zeros((5, 2)), 1.2)
