"""Priors other than a model's own are normalised and are the laws of their samplers."""

import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

from pfbr.models import GaussianMean
from pfbr.particles.density import silverman
from pfbr.particles.particles import equally_weighted, normalise
from pfbr.training.priors import DirichletProcess, MixturePrior, PriorReplaced, kernel_prior

NUM = 8000
MIXTURE = MixturePrior(
    jnp.log(jnp.array([0.3, 0.7])),
    jnp.array([[-1.0, 0.5], [1.5, -0.5]]),
    jnp.array([[[0.5, 0.0], [0.2, 0.4]], [[0.8, 0.0], [-0.3, 0.6]]]),
)
PRIORS = {
    "mixture": MIXTURE,
    "kernel": kernel_prior(jnp.array([[0.0, 1.0], [1.0, -1.0], [-0.5, 0.3], [2.0, 0.4]])),
    "dirichlet process": DirichletProcess(2, components=3).sample(jax.random.key(0)),
}


@jax.jit
def judged(prior, key):
    """Mass, first and second moments on a grid, and draws."""
    ticks = jnp.linspace(-12.0, 12.0, 401)
    points = jnp.stack(jnp.meshgrid(ticks, ticks), -1).reshape(-1, 2)
    mass = jnp.exp(jax.vmap(prior.log_density)(points)) * (ticks[1] - ticks[0]) ** 2
    draws = jax.vmap(prior.sample)(jax.random.split(key, NUM))
    return jnp.sum(mass), mass @ points, (points * mass[:, None]).T @ points, draws


@pytest.mark.parametrize("name", PRIORS)
def test_a_prior_is_normalised_and_is_the_law_of_its_sampler(name):
    """Moments of 8000 draws against the density on a grid, z = 6."""
    total, mean, second, draws = judged(PRIORS[name], jax.random.key(1))
    assert abs(float(total) - 1) < 1e-3
    np.testing.assert_allclose(jnp.mean(draws, 0), mean, atol=6 * np.std(draws) / np.sqrt(NUM))
    fourth = np.sqrt(np.max(np.mean(np.asarray(draws) ** 4, axis=0)))
    np.testing.assert_allclose(draws.T @ draws / NUM, second, atol=6 * fourth / np.sqrt(NUM))


def test_the_mixture_is_scipys():
    x = np.array([0.3, -0.8])
    expected = sum(
        np.exp(w) * scipy.stats.multivariate_normal.pdf(x, m, s @ s.T)
        for w, m, s in zip(*(np.asarray(a) for a in (MIXTURE.log_weights, MIXTURE.means, MIXTURE.scales)), strict=True)
    )
    np.testing.assert_allclose(MIXTURE.log_density(jnp.asarray(x)), np.log(expected), rtol=1e-5)


def test_the_kernel_estimate_is_scipys():
    points = np.random.default_rng(0).normal(size=(30, 2))
    prior = kernel_prior(jnp.asarray(points))
    bandwidth = np.asarray(silverman(equally_weighted(jnp.asarray(points))))
    np.testing.assert_allclose(bandwidth, points.std(0, ddof=1) * 30 ** (-1 / 6), rtol=1e-5)
    x = np.array([0.2, -0.4])
    expected = np.log(np.mean(np.prod(scipy.stats.norm.pdf(x, points, bandwidth), axis=1)))
    np.testing.assert_allclose(prior.log_density(jnp.asarray(x)), expected, rtol=1e-4)


def test_concentration_sets_the_number_of_lumps():
    """Weights sum to one; E w_1 = 1/(1 + a) (mean of Beta(1, a)), so larger a spreads the mass. 1000 draws, z = 6."""
    lumps = []
    keys = jax.random.split(jax.random.key(2), 1000)
    draw = jax.jit(lambda a: jax.vmap(DirichletProcess(2, concentration=a, components=20).sample)(keys))
    for concentration in (0.3, 1.0, 5.0):
        drawn = draw(jnp.asarray(concentration))
        weights = np.exp(np.asarray(drawn.log_weights))
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-4)
        assert abs(weights[:, 0].mean() - 1 / (1 + concentration)) < 6 * weights[:, 0].std() / np.sqrt(1000)
        lumps.append(np.mean(1 / np.sum(weights**2, axis=1)))
        assert np.all(np.isfinite(drawn.scales))
    assert lumps[0] * 1.2 < lumps[1] < lumps[2] / 1.5


def test_a_replaced_prior_keeps_the_rest_of_the_model():
    model = PriorReplaced(GaussianMean(2), MIXTURE)
    x, o = jnp.array([0.1, 0.2]), jnp.array([1.0, 2.0])
    assert model.dim == 2
    assert model.log_prior(x) == MIXTURE.log_density(x)
    assert model.log_likelihood(x, o) == GaussianMean(2).log_likelihood(x, o)
    assert model.linear_gaussian() is None  # the exact posterior of another prior would be wrong
    key = jax.random.key(0)
    np.testing.assert_array_equal(model.sample_prior(key), MIXTURE.sample(key))
    np.testing.assert_array_equal(model.sample_observation(key, x), GaussianMean(2).sample_observation(key, x))


def test_log_weights_are_normalised():
    assert abs(float(jnp.sum(jnp.exp(normalise(jnp.array([1.0, 2.0, -800.0]))))) - 1) < 1e-6
