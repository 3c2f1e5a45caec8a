"""Tempering gets to a sharp observation far away with the whole cloud, and knows how good its density is."""

import jax
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.temper import error_of_density, flow_or_temper
from pfbr.inference.adaptive.filter.transitions import predictive_density

N = 256
CLOUD = equally_weighted(jax.random.normal(jax.random.key(0), (N, 2)))


@pytest.fixture(scope="module")
def tempered():
    """The first coordinate is 5 ± 0.02: 250 standard deviations of the noise from the middle of the cloud."""
    log_likelihood = lambda points: -0.5 * ((points[:, 0] - 5) / 0.02) ** 2
    one = lambda x: log_likelihood(x[None])[0]
    value_and_score = jax.vmap(jax.value_and_grad(one))
    never = Settings(flow=2.0)  # a flow would be exact here
    run = lambda key: flow_or_temper(key, CLOUD, log_likelihood, value_and_score, never, before=None, noisy=True)
    return jax.jit(run)(jax.random.key(1))


def test_a_cloud_gets_there_whole(tempered):
    assert not bool(tempered.unfinished)
    mean, std = tempered.cloud.mean, jnp.sqrt(jnp.diagonal(tempered.cloud.covariance))
    assert float(mean[0]) == pytest.approx(5, abs=0.02)
    assert 0.6 < float(std[1]) < 2.5, "the other coordinate is as wide as before, or as the wide Gaussian's tails"
    assert float(tempered.cloud.ess) > 0.4 * N


def test_the_error_of_a_density_is_small_in_the_middle_and_large_in_its_tails(tempered):
    density = predictive_density(jax.random.key(2), CLOUD, None, Settings(slack=0.0), CLOUD.log_weights)
    assert float(error_of_density(CLOUD, density)) < 0.1
    narrow = equally_weighted(jnp.array([2.5, 0.0]) + 0.3 * CLOUD.points)  # at the edge of the kernels
    assert float(error_of_density(narrow, density)) > float(error_of_density(CLOUD, density))


def test_a_flow_that_leaves_a_mode_behind_is_not_taken():
    """The square is seen. An affine map takes all particles to the nearer root, with equal weights; the few at the
    other one, where nearly all of the posterior is, still see it."""
    z = jax.random.normal(jax.random.key(0), (1024,))
    cloud = equally_weighted(jnp.where(jnp.arange(1024) % 64 == 0, -14.1 + 0.3 * z, 8 + 2 * z)[:, None])
    log_likelihood = lambda points: -0.5 * (points[:, 0] ** 2 / 20 - 10) ** 2
    value_and_score = jax.vmap(jax.value_and_grad(lambda x: log_likelihood(x[None])[0]))
    run = lambda key: flow_or_temper(key, cloud, log_likelihood, value_and_score, Settings(), before=None, noisy=True)
    after = jax.jit(run)(jax.random.key(1))
    behind = jnp.sum(jnp.where(after.cloud.points[:, 0] < 0, after.cloud.weights, 0))
    assert float(behind) > 0.3
