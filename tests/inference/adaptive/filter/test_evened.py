"""What uneven weights say of mean and covariance moves the cloud, as far as it is more than chance."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.evened import evened

EQUAL = 1e-5


def moments(points, weights):
    mean = weights @ points
    return mean, (weights[:, None] * (points - mean)).T @ (points - mean)


@pytest.fixture(params=[2, 7])
def cloud(request):
    d = request.param
    turn = jax.random.normal(jax.random.key(1), (d, d)) * jnp.logspace(-2, 2, d)
    points = 3.0 + jax.random.normal(jax.random.key(2), (4096, d)) @ turn
    return points, jax.nn.softmax(0.3 * jax.random.normal(jax.random.key(3), (4096,)))


def test_weights_of_no_news_move_nothing(cloud):
    points, weights = cloud
    assert np.allclose(evened(points, weights, weights), points, rtol=0, atol=EQUAL * float(jnp.std(points)))


def test_the_cloud_gets_the_mean_and_covariance_of_the_new_weights(cloud):
    points, weights = cloud
    spread = (points - points.mean(0)) / points.std(0)
    now = jax.nn.softmax(jnp.log(weights) + 0.4 * spread[:, 0] - 0.1 * spread[:, 1] ** 2)
    (mean, cov), (wanted, wanted_cov) = moments(evened(points, weights, now), weights), moments(points, now)
    size = jnp.sqrt(jnp.diag(wanted_cov))
    assert np.abs((mean - wanted) / size).max() < 0.02
    assert np.abs((cov - wanted_cov) / size / size[:, None]).max() < 0.05
    assert np.abs((points.T @ weights - wanted) / size).max() > 0.2  # there was something to do


def test_chance_is_not_believed(cloud):
    """Factors that know nothing of where particles are: their noise would move the mean, and moves it far less."""
    points, weights = cloud
    moved, told = [], []
    for seed in range(20):
        now = jax.nn.softmax(jnp.log(weights) + 0.2 * jax.random.normal(jax.random.key(seed), weights.shape))
        size = jnp.sqrt(jnp.diag(moments(points, weights)[1]))
        there = evened(points, weights, now)
        moved.append(np.linalg.norm((weights @ there - weights @ points) / size))
        told.append(np.linalg.norm((now @ points - weights @ points) / size))
    assert np.mean(moved) < 0.5 * np.mean(told)


def test_it_turns_with_the_cloud(cloud):
    points, weights = cloud
    d = points.shape[1]
    now = jax.nn.softmax(jnp.log(weights) + jnp.tanh(points[:, 0] / points[:, 0].std()))
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(4), (d, d)))[0]
    size = float(jnp.std(points))
    assert np.allclose(evened(points @ turn, weights, now), evened(points, weights, now) @ turn, atol=3e-4 * size)
