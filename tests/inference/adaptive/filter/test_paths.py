"""Paths end where the particles are, whatever was chosen on the way; others break them for good."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.model import filter_model
from pfbr.inference.adaptive.filter.paths import LENGTH, first_paths, replay
from pfbr.inference.adaptive.filter.predict import draw_noise, moved
from pfbr.models.base import StateSpaceModel, normal_log_densities
from pfbr.models.conditions import Conditions

N = 8


class ByDraws(StateSpaceModel):
    """An autoregression in the plane, its first number seen."""

    @property
    def dim(self):
        return 2

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return jnp.sum(normal_log_densities(x, 0.0, 1.0))

    def sample_transition(self, key, x):
        return 0.9 * x + 0.3 * jax.random.normal(key, (2,))

    def log_likelihood(self, x, observation):
        return jnp.sum(normal_log_densities(observation, x[:1], 0.5))


class ByNormals(ByDraws):
    def transition_from_normal(self, x, z):
        return 0.9 * x + 0.3 * z


@pytest.fixture(params=[ByDraws, ByNormals], ids=["keys", "normals"])
def model(request):
    return filter_model(request.param())


def went_on(model, paths, points, seed, parent):
    """One report: particles chosen, then moved."""
    cloud = equally_weighted(points[parent])
    noise = draw_noise(jax.random.key(seed), model, cloud)
    observation, dt = jnp.array([0.1 * seed]), jnp.ones(())
    return (
        paths.opened(parent, noise, observation, dt, Conditions()),
        moved(model, cloud.points, noise, dt, Conditions()),
    )


def begun(model):
    points = jax.random.normal(jax.random.key(0), (N, 2))
    noise = draw_noise(jax.random.key(1), model, equally_weighted(points))
    return first_paths(points, noise, jnp.zeros(1), Conditions()), points


def test_a_replay_ends_at_the_particles_and_knows_their_likelihoods(model):
    paths, points = begun(model)
    total = jnp.zeros(N)
    for seed in range(3):
        parent = jax.random.randint(jax.random.key(90 + seed), (N,), 0, N)
        before = total[parent]
        paths, points = went_on(model, paths, points, seed, parent)
        last = jnp.sum(normal_log_densities(jnp.array([0.1 * seed]), points[:, :1], 0.5), axis=1)
        total = before + last
        again = replay(model, paths, paths.start, paths.noise)
        np.testing.assert_allclose(again.points, points, rtol=1e-6)
        np.testing.assert_allclose(again.before, before, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(again.last, last, rtol=1e-5, atol=1e-6)
    assert bool(paths.known)


def test_other_noise_at_the_last_report(model):
    paths, points = went_on(model, *begun(model), 5, jnp.arange(N))
    parent, noise = jnp.full(N, 3), draw_noise(jax.random.key(7), model, equally_weighted(points))
    chosen = paths.chosen(parent, noise)
    expected = moved(model, paths.start[parent], noise, jnp.ones(()), Conditions())
    np.testing.assert_allclose(replay(model, chosen, chosen.start, chosen.noise).points, expected, rtol=1e-6)


def test_paths_end_when_they_are_long_or_broken(model):
    paths, points = begun(model)
    for seed in range(LENGTH):
        assert bool(paths.go_on)
        paths, points = went_on(model, paths, points, seed, jnp.arange(N))
        assert bool(paths.known)
    assert not bool(paths.go_on)
    assert not bool(went_on(model, paths, points, 99, jnp.arange(N))[0].known)
    young = begun(model)[0]
    assert bool(young.broken_where(False).known)
    assert not bool(young.broken_where(True).known)
