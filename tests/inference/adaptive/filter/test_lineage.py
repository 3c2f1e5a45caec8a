"""The error that a lineage tells: known numbers, and the spread of repeated runs."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.cloud import Cloud, equally_weighted, resampled
from pfbr.inference.adaptive.filter.lineage import PERIOD, first_lineage, spread_of_sums
from pfbr.models.conditions import Conditions
from pfbr.particles.summation import CompensatedSum
from pfbr.particles.whitening import whitening_of


def lineage_of(cloud):
    return first_lineage(cloud, jnp.zeros(1), Conditions())


def reported(lineage, cloud):
    """One more report that was absorbed as `cloud` says."""
    lineage = lineage.opened(cloud, CompensatedSum.zero())
    return lineage.after(cloud.parent, jnp.zeros(1), jnp.ones(()), Conditions(), jnp.zeros(()))


def test_independent_particles_have_the_standard_error_of_a_mean():
    cloud = equally_weighted(jax.random.normal(jax.random.key(0), (100, 3)))
    assert lineage_of(cloud).error(cloud) == pytest.approx(1 / np.sqrt(99), rel=1e-4)


def test_copies_count_once():
    few = jax.random.normal(jax.random.key(1), (20, 2))
    cloud = equally_weighted(jnp.repeat(few, 5, axis=0))
    copies = Cloud(cloud.points, cloud.log_weights, cloud.family, jnp.repeat(jnp.arange(20), 5))
    assert lineage_of(cloud).error(copies) == pytest.approx(1 / np.sqrt(19), rel=1e-4)
    one = Cloud(cloud.points, cloud.log_weights, cloud.family, jnp.zeros(100, jnp.int32))
    assert lineage_of(cloud).error(one) == np.inf, "a single family tells nothing"


def test_another_unit_changes_nothing():
    points = jax.random.normal(jax.random.key(2), (64, 2))
    here, there = equally_weighted(points), equally_weighted(points * jnp.array([2.0**20, 2.0**-20]))
    assert lineage_of(here).error(here) == lineage_of(there).error(there)


def test_many_particles_are_counted_in_groups():
    parts = jax.random.normal(jax.random.key(3), (2048, 1)) / 2048
    parts = jnp.concatenate([parts, jnp.full((2048, 1), 1 / 2048)], axis=1)
    whitening = whitening_of(jax.random.normal(jax.random.key(4), (2048, 1)))
    assert spread_of_sums(parts, jnp.arange(2048), whitening) == pytest.approx(1 / np.sqrt(2048), rel=0.2)


def test_origins_are_followed_through_reports_and_kept_for_two_periods():
    cloud = equally_weighted(jnp.arange(4.0)[:, None])
    lineage = lineage_of(cloud)
    parents = Cloud(cloud.points, cloud.log_weights, cloud.family, jnp.array([0, 0, 2, 3]))
    for _ in range(2):
        lineage = reported(lineage, parents)
    np.testing.assert_array_equal(lineage.older.origin, [0, 0, 2, 3])
    turned = Cloud(cloud.points, cloud.log_weights, cloud.family, jnp.array([3, 2, 1, 1]))
    lineage = reported(lineage, turned)
    np.testing.assert_array_equal(lineage.older.origin, [3, 2, 0, 0])
    assert bool(lineage.older.is_prior)
    for _ in range(3 * PERIOD):
        lineage = reported(lineage, parents)
        assert 1 <= lineage.younger.age <= PERIOD
        assert lineage.older.age <= 2 * PERIOD
    assert lineage.older.age > PERIOD
    assert not bool(lineage.older.is_prior)


def test_the_error_is_that_of_repeated_runs():
    """A random walk with drift to zero, seen with noise: 300 filters of 64 particles, resampled at every report."""
    n, observations = 64, jnp.array([0.5, -0.3, 1.1, 0.2, 0.9, 0.4, -0.1, 0.8, 0.6, 0.3, 0.0, 0.7])

    def one(key):
        begin_key, *keys = jax.random.split(key, 1 + 2 * len(observations))
        cloud = equally_weighted(jax.random.normal(begin_key, (n, 1)))
        lineage = lineage_of(cloud)
        for y, k1, k2 in zip(observations, keys[::2], keys[1::2], strict=True):
            lineage = lineage.opened(cloud, CompensatedSum.zero())
            before = resampled(k1, cloud.points, cloud.log_weights, jnp.arange(n))
            points = 0.8 * before.points + 0.6 * jax.random.normal(k2, (n, 1))
            log_weights = jax.nn.log_softmax(-0.5 * (y - points[:, 0]) ** 2)
            cloud = before.at(points, log_weights)
            error = lineage.error(cloud)
            lineage = lineage.after(cloud.parent, jnp.zeros(1), jnp.ones(()), Conditions(), jnp.zeros(()))
        return cloud.mean[0], jnp.sqrt(cloud.covariance[0, 0]), error

    means, stds, errors = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), 300))
    true = np.std(np.asarray(means)) / np.mean(np.asarray(stds))  # known to 4 %
    assert np.sqrt(np.mean(np.square(np.asarray(errors)))) == pytest.approx(float(true), rel=0.3)
