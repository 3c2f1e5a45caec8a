"""Resampling that keeps mean and covariance, and says where each particle comes from."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.cloud import Cloud, equally_weighted, resampled
from pfbr.inference.adaptive.filter.matching import MAX_MATCHED, matched
from pfbr.particles.whitening import whitening_of

POINTS = jax.random.normal(jax.random.key(0), (200, 2)) * jnp.array([1.0, 100.0]) + jnp.array([0.0, 1000.0])
LOG_WEIGHTS = jax.nn.log_softmax(POINTS[:, 0])


def test_resampling_keeps_mean_and_covariance():
    before = equally_weighted(POINTS).at(POINTS, LOG_WEIGHTS)
    after = resampled(jax.random.key(1), POINTS, LOG_WEIGHTS, jnp.arange(200))
    scale = jnp.sqrt(jnp.diagonal(before.covariance))
    np.testing.assert_allclose(after.mean / scale, before.mean / scale, atol=1e-4)
    np.testing.assert_allclose(
        after.covariance / jnp.outer(scale, scale), before.covariance / jnp.outer(scale, scale), atol=1e-3
    )
    assert after.ess == 200


def test_copies_know_their_parents():
    parent = jnp.arange(200)[::-1]
    after = resampled(jax.random.key(1), POINTS, LOG_WEIGHTS, parent, 50)
    assert after.points.shape == (50, 2)
    np.testing.assert_array_equal(after.parent, parent[after.family])


def test_too_few_effective_particles_are_left_where_they_are():
    one = jnp.where(jnp.arange(200) == 7, 0.0, -jnp.inf)
    after = resampled(jax.random.key(2), POINTS, one, jnp.arange(200))
    np.testing.assert_array_equal(after.points, jnp.broadcast_to(POINTS[7], (200, 2)))


def test_points_that_match_already_stay():
    equal = jnp.full(200, 1 / 200)
    np.testing.assert_array_equal(matched(POINTS, equal, whitening_of(POINTS, equal, shrink=False)), POINTS)


def test_a_cloud_far_from_zero_has_its_mean():
    far = Cloud(POINTS + 1e5, LOG_WEIGHTS, jnp.arange(200), jnp.arange(200))
    exact = np.exp(np.asarray(LOG_WEIGHTS, float)) @ np.asarray(far.points, float)
    np.testing.assert_allclose(far.mean, exact, atol=0.02)


def test_very_many_are_copies_and_nothing_else():
    after = resampled(jax.random.key(1), POINTS, LOG_WEIGHTS, jnp.arange(200), MAX_MATCHED + 1)
    np.testing.assert_array_equal(after.points, POINTS[after.family])
