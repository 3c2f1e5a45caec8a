"""The density of a cloud is one: it integrates to one, keeps the moments, and is as narrow as the cloud asks for."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.density import MAX_CENTRES, cloud_density, judged_density
from pfbr.inference.adaptive.filter.settings import Settings

GRID = jnp.linspace(-20.0, 20.0, 8001)[:, None]
CELL = 40 / 8000
NORMALS = jax.random.normal(jax.random.key(0), (1024, 1))
APART = 0.3 * NORMALS + 3 * jnp.sign(NORMALS)  # two modes


@pytest.mark.parametrize("count", [256, 1024])
@pytest.mark.parametrize("points", [NORMALS, APART], ids=["normal", "two modes"])
def test_a_density_integrates_to_one_and_keeps_the_moments(points, count):
    cloud = equally_weighted(points[:count])
    density = cloud_density(jax.random.key(1), cloud, Settings(defensive=1e-6))
    values = jnp.exp(density(GRID))
    assert float(jnp.sum(values) * CELL) == pytest.approx(1, abs=1e-3)
    mean = float(jnp.sum(values * GRID[:, 0]) * CELL)
    assert mean == pytest.approx(float(cloud.mean[0]), abs=0.02)
    variance = float(jnp.sum(values * GRID[:, 0] ** 2) * CELL) - mean**2
    assert variance == pytest.approx(float(cloud.covariance[0, 0]), rel=0.02)


def test_the_cloud_chooses_the_width():
    assert cloud_density(jax.random.key(1), equally_weighted(NORMALS[:256]), Settings()).width == 1
    assert cloud_density(jax.random.key(1), equally_weighted(APART[:256]), Settings()).width < 0.5


def test_chances_are_made_up_for_by_weights():
    cloud = equally_weighted(APART)
    to_the_right = jax.nn.log_softmax(jnp.where(APART[:, 0] > 0, 2.0, 0.0))
    density, _ = judged_density(jax.random.key(2), cloud, Settings(defensive=1e-6), to_the_right)
    assert density.centres.shape[0] == MAX_CENTRES
    assert np.mean(np.asarray(density.centres)[:, 0] > 0) > 0.8
    right = float(jnp.sum(jnp.where(GRID[:, 0] > 0, jnp.exp(density(GRID)), 0)) * CELL)
    assert right == pytest.approx(float(jnp.mean(APART > 0)), abs=0.1)  # 0.87 without the weights


def test_beyond_the_particles_nothing_vouches():
    density = cloud_density(jax.random.key(1), equally_weighted(APART[:256]), Settings())
    np.testing.assert_allclose(density.beyond(jnp.array([[3.0], [0.0], [12.0]])), [0, 1, 1], atol=0.1)
