"""Dynamics without noise: particles stay on paths of the model, and follow a chaotic map as a grid of starts does."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from scipy.special import logsumexp

from pfbr.inference.adaptive.filter.model import filter_model
from pfbr.inference.adaptive.filter.paths import LENGTH, replay
from pfbr.inference.adaptive.filter.predict import draw_noise
from pfbr.inference.adaptive.filter.step import init, step
from pfbr.models.base import StateSpaceModel, normal_log_densities
from pfbr.models.conditions import Conditions

N, T, NOISE, PRIOR = 128, 14, 0.3, 0.3


class Chaos(StateSpaceModel):
    """x ↦ 1.6 sin 2x, seen with errors: neighbours part at every step."""

    @property
    def dim(self):
        return 1

    def sample_prior(self, key):
        return 1 + PRIOR * jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jnp.sum(normal_log_densities(x, 1.0, PRIOR))

    def sample_transition(self, key, x):
        return 1.6 * jnp.sin(2 * x)

    def log_likelihood(self, x, observation):
        return jnp.sum(normal_log_densities(observation, x, NOISE))

    def sample_observation(self, key, x):
        return x + NOISE * jax.random.normal(key, (1,))


def observations():
    rng, x, seen = np.random.default_rng(1), 1.3, []
    for _ in range(T):
        x = 1.6 * np.sin(2 * x)
        seen.append(x + NOISE * rng.standard_normal())
    return np.array(seen, np.float32)[:, None]


def truth(seen):
    """Means, standard deviations and log predictives by two million starts, in float64."""
    x = np.linspace(-0.5, 2.5, 2_000_001)
    log_p = -0.5 * ((x - 1) / PRIOR) ** 2
    log_p -= logsumexp(log_p)
    found = []
    for y in seen[:, 0]:
        x = 1.6 * np.sin(2 * x)
        log_p = log_p - 0.5 * ((y - x) / NOISE) ** 2 - np.log(NOISE * np.sqrt(2 * np.pi))
        gained = logsumexp(log_p)
        log_p -= gained
        mean = np.exp(log_p) @ x
        found.append((mean, np.sqrt(np.exp(log_p) @ (x - mean) ** 2), gained))
    return np.array(found).T


@pytest.fixture(scope="module")
def followed():
    model, seen = filter_model(Chaos()), observations()
    go = jax.jit(lambda key, state, y: step(key, model, state, y, dt=1.0, conditions=Conditions()))
    state = init(jax.random.key(0), model, N, observation=jnp.zeros(1), conditions=Conditions())
    states, infos = [], []
    for i, y in enumerate(seen):
        state, info = go(jax.random.key(i), state, jnp.asarray(y))
        states.append(state)
        infos.append(info)
    return model, seen, states, infos


def test_particles_are_where_their_paths_end(followed):
    model, _, states, infos = followed
    assert sum(int(info.move) == 2 for info in infos[LENGTH:]) > 0, "none was moved: nothing is tested"
    for state in states[:: LENGTH // 2]:
        window = state.paths
        paths = window.as_paths(draw_noise(jax.random.key(0), model, state.cloud))
        end = replay(model, paths, paths.start, paths.noise).points
        np.testing.assert_allclose(end, state.cloud.points, atol=1e-4)


def test_a_chaotic_map_is_followed_as_by_a_grid(followed):
    _, seen, states, infos = followed
    means, stds, gained = truth(seen)
    off = [(float(state.cloud.mean[0]) - m) / s for state, m, s in zip(states, means, stds, strict=True)]
    assert np.sqrt(np.mean(np.square(off))) < 0.25
    assert float(states[-1].log_evidence.value) == pytest.approx(gained.sum(), abs=1.0)
    assert not any(bool(info.flagged) for info in infos)


def test_a_cloud_that_left_its_paths_begins_anew(followed):
    *_, states, _ = followed
    window, cloud = states[-1].paths, states[0].cloud
    anew = window.left_by(cloud)
    assert int(anew.count) == 0
    assert not bool(anew.from_prior)
    opened = anew.opened(cloud, jnp.zeros(1), jnp.ones(()), Conditions())
    assert int(opened.count) == 1
    np.testing.assert_array_equal(opened.trail[0], cloud.points)
    assert bool(states[0].paths.from_prior)
    assert not bool(states[-1].paths.from_prior)
