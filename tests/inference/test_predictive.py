"""The density after the dynamics: the plain mixture is its formula, the smooth one keeps mean and covariance."""

import jax
import numpy as np
import scipy.stats
from jax import numpy as jnp

from pfbr.inference.predictive import GaussianPredictive, Predictive, plain, predictive_log_density, smoothed
from pfbr.models import LinearDynamics
from pfbr.particles.particles import Particles, equally_weighted

MODEL = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])
RNG = np.random.default_rng(0)
BEFORE, AT = RNG.normal(size=(24, 2)).astype(np.float32), RNG.normal(size=(7, 2)).astype(np.float32)


def formula(weights):
    system = MODEL.linear_gaussian()
    means = BEFORE @ np.asarray(system.A).T
    each = [scipy.stats.multivariate_normal(mean, np.asarray(system.Q)).pdf(AT) for mean in means]
    return np.log(np.tensordot(weights, np.stack(each), 1))


def test_the_plain_mixture_is_its_formula():
    weights = RNG.dirichlet(np.ones(24))
    before = Particles(jnp.asarray(BEFORE), jnp.log(jnp.asarray(weights, jnp.float32)))
    found = plain(MODEL, before)
    assert isinstance(found, GaussianPredictive)
    np.testing.assert_allclose(found.log_density(jnp.asarray(AT)), formula(weights), atol=2e-4)
    np.testing.assert_allclose(
        Predictive(MODEL, before).log_density(jnp.asarray(AT)), found.log_density(jnp.asarray(AT)), atol=2e-4
    )
    equal = np.full(24, 1 / 24)
    np.testing.assert_allclose(found.log_density(jnp.asarray(AT), equal=True), formula(equal), atol=2e-4)
    both = predictive_log_density(MODEL, jnp.asarray(BEFORE), jnp.asarray(BEFORE), jnp.asarray(AT))
    np.testing.assert_allclose(both, formula(equal), atol=2e-4)


def moments(law: GaussianPredictive):
    weights = np.exp(np.asarray(law.log_weights))
    mean = weights @ np.asarray(law.means)
    centred = np.asarray(law.means) - mean
    return mean, (weights[:, None] * centred).T @ centred + np.asarray(law.scale @ law.scale.T)


def test_a_smoother_law_has_the_same_mean_and_covariance():
    before = equally_weighted(jnp.asarray(BEFORE))
    predicted = plain(MODEL, before).from_normal(jax.random.normal(jax.random.key(0), (24, 2)))
    for found, expected in zip(moments(smoothed(MODEL, before, predicted)), moments(plain(MODEL, before)), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5)


def test_a_gaussian_cloud_asks_for_one_gaussian_and_two_modes_do_not():
    normal = jax.random.normal(jax.random.key(1), (200, 2))
    noise = jax.random.normal(jax.random.key(2), (200, 2))
    apart = normal * 0.1 + jnp.where(jnp.arange(200)[:, None] % 2 == 0, 12.0, -12.0)

    @jax.jit
    def width(points):
        """How far the means were drawn in: 1 is one Gaussian."""
        before = equally_weighted(points)
        raw = plain(MODEL, before)
        after = smoothed(MODEL, before, raw.from_normal(noise))
        return 1 - jnp.std(after.means) / jnp.std(raw.means)

    assert width(normal) > 0.9
    assert width(apart) < 0.02
