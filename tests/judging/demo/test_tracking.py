"""The ship moves as integrated white noise does, and is seen by the beacon whose turn it is."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.baselines import BootstrapSMC
from pfbr.inference.method import Stream
from pfbr.inference.registry import as_method
from pfbr.judging.demo import tracking
from pfbr.models.linear_dynamics import LinearDynamics
from pfbr.models.simulate import simulate

SHIP = tracking.Ship(0.2, 0.5)


def test_noise_of_position_and_velocity_is_that_of_integrated_white_noise():
    """Covariance of a step of length t, per axis: s² [[t³/3, t²/2], [t²/2, t]]; z = 5 over 4,000 draws."""
    t, s = 1.7, 0.5
    draw = jax.jit(jax.vmap(lambda k: SHIP.sample_transition(k, jnp.array([1.0, 2.0, 3.0, -1.0]), dt=t)))
    moved = np.asarray(draw(jax.random.split(jax.random.key(0), 4000)))
    np.testing.assert_allclose(moved.mean(0), [1 + 3 * t, 2 - t, 3, -1], atol=5 * 1.0 / np.sqrt(4000))
    expected = s**2 * np.array([[t**3 / 3, t**2 / 2], [t**2 / 2, t]])
    for axis in (0, 1):
        found = np.cov(moved[:, [axis, axis + 2]].T)
        np.testing.assert_allclose(found, expected, rtol=5 * np.sqrt(2 / 4000))


def test_beacons_take_turns_and_tell_their_distance():
    stream, states = tracking.voyage(SHIP, tracking.TrackingSettings(num_reports=9))
    apart = np.linalg.norm(states[:, :2] - np.asarray(tracking.BEACONS)[np.arange(9) % 3], axis=1)
    assert np.max(np.abs(stream.observations[:, 0] - apart)) < 5 * 0.2


def test_the_error_of_the_truth_is_nothing():
    same = tracking.Followed(jnp.ones((3, 4)), jnp.ones((3, 4)), jnp.tile(jnp.eye(4), (3, 1, 1)))
    other = tracking.Followed(jnp.full((3, 4), 1.5), same.std, same.cov)
    np.testing.assert_allclose(tracking.error(same, same), 0)
    np.testing.assert_allclose(tracking.error(other, same), 0.5)


def test_filters_pooled_by_their_evidence_are_kalman_s(monkeypatch):
    """Of a linear model with few particles: nearer to the truth than its filters are, and as wide."""
    monkeypatch.setattr(tracking, "POOLED", 16)
    model = LinearDynamics.random(0, 2)
    stream = Stream(jnp.asarray(simulate(jax.random.key(1), model, 6).observations))
    wanted = tracking.followed(jax.random.key(0), as_method("auto", model), model, stream, 1024)  # exact
    pooled = tracking.pooled(jax.random.key(2), BootstrapSMC(), model, stream, 256)
    single = tracking.followed(jax.random.key(2), BootstrapSMC(), model, stream, 256)
    rms = lambda said: np.sqrt(np.mean(tracking.error(said, wanted) ** 2))
    assert rms(pooled) < 0.6 * rms(single)
    np.testing.assert_allclose(pooled.std, wanted.std, rtol=0.1)


@pytest.mark.slow
def test_every_rival_is_given_particles_and_judged():
    settings = tracking.TrackingSettings(num_reports=8, num_particles=64, truth_particles=4096, most_particles=1024)
    record = tracking.run(settings=settings)
    taken = record.settings["seconds_per_report"]
    for name, count in record.settings["particles"].items():
        assert settings.num_particles <= count <= settings.most_particles
        assert taken[name] > 0
        assert np.all(np.isfinite(record.arrays[f"{name}_error"]))
