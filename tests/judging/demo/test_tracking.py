"""The ship moves as integrated white noise does, and is seen by the beacon whose turn it is."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.judging.demo import tracking

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


@pytest.mark.slow
def test_every_rival_is_given_particles_and_judged():
    settings = tracking.TrackingSettings(num_reports=8, num_particles=64, truth_particles=4096, most_particles=1024)
    record = tracking.run(settings=settings)
    taken = record.settings["seconds_per_report"]
    for name, count in record.settings["particles"].items():
        assert settings.num_particles <= count <= settings.most_particles
        assert taken[name] > 0
        assert np.all(np.isfinite(record.arrays[f"{name}_error"]))
