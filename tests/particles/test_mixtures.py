"""Distributions made of Gaussians are normalised, are SciPy's, and are the laws of their samplers."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

from pfbr.particles.mixtures import KernelDensity, MixtureOfGaussians

NUM = 8000
density = eqx.filter_jit(lambda distribution, x: distribution.log_density(x))


def mixture():
    return MixtureOfGaussians(
        jnp.log(jnp.array([0.3, 0.7])),
        jnp.array([[-1.0, 0.5], [1.5, -0.5]]),
        jnp.array([[[0.5, 0.0], [0.2, 0.4]], [[0.8, 0.0], [-0.3, 0.6]]]),
    )


DISTRIBUTIONS = {
    "mixture": mixture,
    "kernel": lambda: KernelDensity.of(jnp.array([[0.0, 1.0], [1.0, -1.0], [-0.5, 0.3], [2.0, 0.4]])),
}


@jax.jit
def judged(distribution, key):
    """Mass, first and second moments on a grid, and draws."""
    ticks = jnp.linspace(-12.0, 12.0, 401)
    points = jnp.stack(jnp.meshgrid(ticks, ticks), -1).reshape(-1, 2)
    mass = jnp.exp(jax.vmap(distribution.log_density)(points)) * (ticks[1] - ticks[0]) ** 2
    draws = jax.vmap(distribution.sample)(jax.random.split(key, NUM))
    return jnp.sum(mass), mass @ points, (points * mass[:, None]).T @ points, draws


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_it_is_normalised_and_is_the_law_of_its_sampler(name):
    """Moments of 8000 draws against the density on a grid, z = 6."""
    total, mean, second, draws = judged(DISTRIBUTIONS[name](), jax.random.key(1))
    assert abs(float(total) - 1) < 1e-3
    np.testing.assert_allclose(jnp.mean(draws, 0), mean, atol=6 * np.std(draws) / np.sqrt(NUM))
    fourth = np.sqrt(np.max(np.mean(np.asarray(draws) ** 4, axis=0)))
    np.testing.assert_allclose(draws.T @ draws / NUM, second, atol=6 * fourth / np.sqrt(NUM))


def test_the_mixture_is_scipys():
    x, made = np.array([0.3, -0.8]), mixture()
    expected = sum(
        np.exp(w) * scipy.stats.multivariate_normal.pdf(x, m, s @ s.T)
        for w, m, s in zip(*(np.asarray(a) for a in (made.log_weights, made.means, made.scales)), strict=True)
    )
    np.testing.assert_allclose(density(made, jnp.asarray(x)), np.log(expected), rtol=1e-5)


def test_the_kernel_estimate_is_scipys():
    points = np.random.default_rng(0).normal(size=(30, 2))
    kernel = KernelDensity.of(jnp.asarray(points))
    x = np.array([0.2, -0.4])
    expected = np.log(np.mean(np.prod(scipy.stats.norm.pdf(x, points, np.asarray(kernel.bandwidth)), axis=1)))
    np.testing.assert_allclose(density(kernel, jnp.asarray(x)), expected, rtol=1e-4)


def test_a_mixture_has_a_score_and_serves_many_points_at_once():
    """∇ log q = Σ r_c Λ_c (m_c − x), r the responsibilities."""
    made, x = mixture(), jnp.array([[0.3, -0.8], [4.0, 4.0]])
    covs = np.einsum("cij,ckj->cik", made.scales, made.scales)
    each = [
        [scipy.stats.multivariate_normal.pdf(p, m, c) for m, c in zip(np.asarray(made.means), covs, strict=True)]
        for p in np.asarray(x)
    ]
    shares = np.exp(made.log_weights) * np.array(each)
    shares /= shares.sum(1, keepdims=True)
    pulls = np.einsum("cij,pcj->pci", np.linalg.inv(covs), np.asarray(made.means)[None] - np.asarray(x)[:, None])
    found = jax.jit(jax.vmap(jax.grad(made.log_density)))(x)
    np.testing.assert_allclose(found, np.einsum("pc,pci->pi", shares, pulls), rtol=1e-3)
