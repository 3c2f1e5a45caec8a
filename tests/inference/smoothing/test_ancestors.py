"""Dynamics without a density: paths of a particle filter traced back, against Kalman's smoother."""

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.inference.smoothing.ancestors import replayed, traced
from pfbr.metrics.kalman_smoother import kalman_smoother
from pfbr.models import LinearDynamics, StateSpaceModel
from pfbr.models.conditions import Conditions


class Silent(LinearDynamics):
    """The same without the density of its transition."""

    log_transition = StateSpaceModel.log_transition


MODEL = Silent(0.9 * np.eye(1), np.eye(1))


def test_means_are_those_of_kalmans_smoother():
    """64 particles, 1,024 of them in the replay, 64 paths: 0.3 standard deviations."""
    observations = np.random.default_rng(2).normal(size=(6, 1)).astype(np.float32)
    truth = kalman_smoother(MODEL, jnp.asarray(observations))
    trace = pfbr.run(MODEL, observations, method="gaussian", num_particles=64, smooth=True)
    std = np.sqrt(np.asarray(truth.cov)[:, 0, 0])
    assert trace.smoothed.way == "ancestors"
    np.testing.assert_array_less(np.abs(trace.smoothed.mean() - truth.mean)[:, 0], 0.3 * std)
    session = pfbr.Session(MODEL, method="gaussian", num_particles=64)
    for y in observations:
        session.update(y)
    smoothed = session.smooth(3)
    assert smoothed.mean().shape == (4, 1)
    np.testing.assert_array_less(np.abs(smoothed.mean() - truth.mean[2:])[:, 0], 0.3 * std[2:])


def test_paths_follow_the_dynamics_and_run_together():
    """Deterministic dynamics: every path is its start, doubled at each step."""

    class Doubling(Silent):
        def sample_transition(self, key, x):
            return 2.0 * x

    model = Doubling(np.eye(1), np.eye(1))
    begin = jax.random.normal(jax.random.key(0), (512, 1))
    observations = jnp.asarray([[1.0], [2.0], [4.0], [8.0]])
    found = traced(jax.random.key(1), model, begin, observations, Conditions(), 100)
    np.testing.assert_allclose(found.paths[1:], 2 * found.paths[:-1], rtol=1e-6)
    assert np.all(np.diff(found.ess) >= -1e-3)  # fewer and fewer different ones as one goes back
    assert found.ess[0] < 60
    # x_0 = ½ is what the rows say, with a precision of 4 + 16 + 64 + 256
    np.testing.assert_allclose(found.paths[0].mean(), (0.5 * 340) / 341, atol=0.06)


def test_memory_is_bounded():
    assert replayed(256, 100, 4) == 4096
    assert replayed(256, 10_000, 40) == 256
