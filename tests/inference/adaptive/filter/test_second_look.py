"""A mirror image that was lost is found again from the cloud before it was; outliers are no reason to replay."""

import jax
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.absorbed import TEMPERED, absorbed
from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.lineage import first_lineage
from pfbr.inference.adaptive.filter.model import filter_model
from pfbr.inference.adaptive.filter.second_look import look_again, spread_out, surprised
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.models.base import StateSpaceModel
from pfbr.models.conditions import Conditions
from pfbr.particles.summation import CompensatedSum

SETTINGS = Settings(second_look_particles=512)


class Mirrored(StateSpaceModel):
    """|x| is seen at first; then x itself (an observation above 100 is x + 200)."""

    @property
    def dim(self):
        return 1

    def sample_prior(self, key):
        return 3 * jax.random.normal(key, (1,))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x**2) / 9

    def sample_transition(self, key, x):
        return x + 0.05 * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        seen = jnp.where(observation > 100, x + 200, jnp.abs(x))
        return -0.5 * jnp.sum((observation - seen) ** 2) / 0.01

    def sample_observation(self, key, x):
        return jnp.abs(x) + 0.1 * jax.random.normal(key, (1,))


MODEL = filter_model(Mirrored())


def told(lineage, observation):
    parent = jnp.arange(lineage.older.origin.shape[0])
    return lineage.after(parent, jnp.array([observation]), jnp.ones(()), Conditions(), jnp.zeros(()))


@pytest.fixture(scope="module")
def lost():
    """All particles on the wrong side after three reports, and the lineage that starts at the prior."""
    prior = equally_weighted(3 * jax.random.normal(jax.random.key(0), (64, 1)))
    lineage = first_lineage(prior, jnp.zeros(1), Conditions())
    for y in (4.0, 4.05, 3.95):
        lineage = told(lineage, y)
    return equally_weighted(4.0 + 0.1 * jax.random.normal(jax.random.key(1), (64, 1))), lineage


def test_the_lost_mirror_image_is_found(lost):
    cloud, lineage = lost
    shown = told(lineage, 196.0)  # x is −4 after all
    wrong = CompensatedSum.zero().add(jnp.asarray(-3000.0))
    found, evidence, better = look_again(jax.random.key(2), MODEL, cloud, wrong, shown, SETTINGS)
    assert bool(better)
    assert evidence.value > -60
    assert float(found.mean[0]) == pytest.approx(-4, abs=0.1)


def test_an_outlier_changes_nothing(lost):
    cloud, lineage = lost
    shown = told(lineage, 4.0)
    right = CompensatedSum.zero().add(jnp.asarray(2.0))
    kept, evidence, better = look_again(jax.random.key(2), MODEL, cloud, right, shown, SETTINGS)
    assert not bool(better)
    assert evidence.value == right.value
    assert bool(jnp.all(kept.points == cloud.points))


@pytest.mark.parametrize(("log_predictive", "expected"), [(0.0, False), (-3000.0, True)])
def test_surprise_is_measured_by_what_the_cloud_would_make_up(lost, log_predictive, expected):
    cloud, lineage = lost
    result = absorbed(cloud, log_predictive, TEMPERED)
    assert bool(surprised(jax.random.key(3), MODEL, cloud, result, lineage, Conditions(), 8.0)) == expected


def test_a_cloud_is_spread_out_with_its_moments():
    cloud = equally_weighted(jax.random.normal(jax.random.key(4), (64, 2)) * jnp.array([1.0, 1e3]))
    many = spread_out(jax.random.key(5), cloud, 4096, Settings())
    assert many.points.shape == (4096, 2)
    away = (many.mean - cloud.mean) / jnp.sqrt(jnp.diagonal(cloud.covariance))
    assert float(jnp.max(jnp.abs(away))) < 5 / 64
