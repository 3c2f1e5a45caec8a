"""Sharp observations under a vague prior, in closed form: moves of whole paths give posterior and evidence."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.absorbed import TEMPERED
from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.model import filter_model
from pfbr.inference.adaptive.filter.path_moves import move_paths
from pfbr.inference.adaptive.filter.paths import first_paths
from pfbr.inference.adaptive.filter.predict import draw_noise, moved
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.models.base import StateSpaceModel, normal_log_densities
from pfbr.models.conditions import Conditions

N, PRIOR, STEP, SHARP = 512, 10.0, 0.5, 0.1


class Walk(StateSpaceModel):
    @property
    def dim(self):
        return 1

    def sample_prior(self, key):
        return PRIOR * jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jnp.sum(normal_log_densities(x, 0.0, PRIOR))

    def sample_transition(self, key, x):
        return x + STEP * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        return jnp.sum(normal_log_densities(observation, x, SHARP))


class WalkByNormals(Walk):
    def transition_from_normal(self, x, z):
        return x + STEP * z


def kalman(observations):
    mean, variance, total = 0.0, PRIOR**2, 0.0
    for y in observations:
        variance += STEP**2
        seen = variance + SHARP**2
        total += -0.5 * (y - mean) ** 2 / seen - 0.5 * np.log(2 * np.pi * seen)
        mean, variance = mean + variance / seen * (y - mean), variance * SHARP**2 / seen
    return mean, np.sqrt(variance), total


@pytest.mark.parametrize("walk", [Walk, WalkByNormals])
def test_reports_a_hundred_times_sharper_than_the_prior(walk):
    """The first two reports of a stream, 12 and then half a unit further: a standard error of the mean is 0.05 sd."""
    model, observations = filter_model(walk()), [12.0, 12.5]

    @jax.jit
    def follow(key):
        points = jax.vmap(walk().sample_prior)(jax.random.split(key, N))
        paths = first_paths(points, draw_noise(key, model, equally_weighted(points)), jnp.zeros(1), Conditions())
        cloud, total = equally_weighted(points), 0.0
        for seed, y in enumerate(observations):
            first, second = jax.random.split(jax.random.fold_in(key, seed))
            chosen = jax.random.categorical(first, cloud.log_weights, shape=(N,))
            noise = draw_noise(first, model, cloud)
            paths = paths.opened(chosen, noise, jnp.array([y]), jnp.ones(()), Conditions())
            predicted = equally_weighted(moved(model, cloud.points[chosen], noise, jnp.ones(()), Conditions()))
            result = move_paths(second, model, predicted, paths, Settings())
            cloud, paths, total = result.cloud, result.paths, total + result.log_predictive
        return result, total

    result, total = follow(jax.random.key(3))
    mean, std, evidence = kalman(observations)
    assert result.move == TEMPERED
    assert bool(result.renewed)
    assert not bool(result.unfinished)
    assert abs(float(result.cloud.mean[0]) - mean) < 5 * 0.05 * std
    assert float(jnp.sqrt(result.cloud.covariance[0, 0])) == pytest.approx(std, rel=0.2)
    assert float(total) == pytest.approx(evidence, abs=0.6)
