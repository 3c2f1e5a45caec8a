"""States given what came later, of runs and sessions, against Kalman's smoother."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.inference.method import Stream
from pfbr.inference.smoothing.backward import MOST
from pfbr.metrics.kalman_smoother import kalman_smoother
from pfbr.models import LinearDynamics
from tests.inference.test_conditions_kalman import Oscillator, stream  # noqa: F401  (a fixture)


@pytest.fixture(scope="module")
def truth(stream):  # noqa: F811
    observations, times, inputs = stream
    seen = ~np.isnan(observations)
    dt = jnp.asarray(np.diff(times, prepend=1.7e9), jnp.float32)
    return kalman_smoother(Oscillator(), Stream(jnp.where(seen, observations, 0), dt, inputs, jnp.asarray(seen)))


def away(mean, truth):
    """In standard deviations, (T,)."""
    left = np.asarray(mean) - np.asarray(truth.mean)
    return np.sqrt(np.einsum("ti,tij,tj->t", left, np.linalg.inv(np.asarray(truth.cov, float)), left) / left.shape[1])


def test_gaps_irregular_times_and_controls_as_kalmans_smoother_has_them(stream, truth):  # noqa: F811
    """256 particles: 0.15 standard deviations (exact draws: 0.06), but for stage 6: the last report contradicts what
    was believed there by 2.6 standard deviations, few particles of that cloud are left, and the ESS tells."""
    observations, times, inputs = stream
    trace = pfbr.run(
        Oscillator(), observations, times=times, inputs=inputs, method="gaussian", start=1.7e9, smooth=True
    )
    smoothed = trace.smoothed
    assert smoothed.way == "backward"
    assert len(smoothed) == 7
    sound = smoothed.ess > 40
    np.testing.assert_array_equal(sound, [True, True, True, True, True, False, True])
    assert away(smoothed.mean(), truth)[sound].max() < 0.15
    assert away(smoothed.mean(), truth)[5] < 0.5
    std = np.sqrt(np.diagonal(truth.cov, axis1=1, axis2=2))
    np.testing.assert_allclose(smoothed.std()[sound], std[sound], rtol=0.15)
    assert away(smoothed.samples.mean(axis=1), truth)[sound].max() < 0.3
    np.testing.assert_allclose(smoothed.mean()[-1], trace.mean()[-1], atol=1e-5)
    np.testing.assert_array_equal(smoothed.samples[2], smoothed.samples[3])  # one instant, one state
    assert np.corrcoef(smoothed.samples[0, :, 0], smoothed.samples[1, :, 0])[0, 1] > 0.5  # paths hang together
    assert smoothed.quantile([0.1, 0.9]).shape == (2, 7, 2)


def test_a_session_smooths_what_it_keeps(stream, truth):  # noqa: F811
    observations, times, inputs = stream
    session = pfbr.Session(Oscillator(), method="gaussian", start=1.7e9, undo=4)
    with pytest.raises(pfbr.errors.InputError, match="no 1 reports"):
        session.smooth()
    for m, (y, time) in enumerate(zip(observations, times, strict=True)):
        session.update(None if np.isnan(y).all() else y, time=time, inputs={"push": inputs["push"][m]})
    smoothed = session.smooth()
    assert len(smoothed) == 5
    last = jax.tree.map(lambda leaf: leaf[2:], truth)
    sound = smoothed.ess > 40
    assert away(smoothed.mean(), last)[sound].max() < 0.15
    assert sound.sum() == 4
    assert len(session.smooth(2)) == 3
    np.testing.assert_array_equal(session.smooth(2).mean(), session.smooth(2).mean())
    again = pfbr.Session.from_bytes(session.to_bytes(), Oscillator())
    np.testing.assert_array_equal(again.smooth(2).mean(), session.smooth(2).mean())
    with pytest.raises(pfbr.errors.InputError, match="keeps 4: make it with a larger `undo`"):
        session.smooth(5)


def test_many_streams_and_large_clouds():
    model = LinearDynamics(0.9 * np.eye(1), np.eye(1))
    observations = np.random.default_rng(1).normal(size=(2, 5, 1))
    smoothed = pfbr.run(model, observations, method="gaussian", num_particles=MOST + 8, smooth=True).smoothed
    assert smoothed.mean().shape == (2, 5, 1)
    assert smoothed.samples.shape == (2, 5, MOST, 1)
    assert smoothed.ess.shape == (2, 5)
    for s in range(2):
        assert away(smoothed.mean()[s], kalman_smoother(model, jnp.asarray(observations[s], jnp.float32))).max() < 0.1


def test_an_unknown_at_rest_has_nothing_to_smooth():
    model = pfbr.models.GaussianMean(2)
    with pytest.raises(pfbr.errors.InputError, match="stands still"):
        pfbr.run(model, np.zeros((3, 2)), smooth=True)
    session = pfbr.Session(model)
    with pytest.raises(pfbr.errors.InputError, match="stands still"):
        session.smooth(1)
