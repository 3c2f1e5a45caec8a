"""Streams that score themselves, against the Gaussian's own scores under Kalman's forecasts."""

import numpy as np
import pytest
from scipy.stats import norm

import pfbr
from pfbr.errors import InputError, ModelError
from pfbr.particles.sample_scores import crps
from tests.inference.test_forecast import STREAM, SYSTEM, Unseen, Walk
from tests.particles.test_sample_scores import gaussian_crps


def test_a_stream_scores_itself():
    """Against the Gaussian's own CRPS and coverage, under Kalman's one-step-ahead forecasts."""
    rng = np.random.default_rng(5)
    level = np.cumsum(rng.normal(size=40))
    stream = (level + 0.5 * rng.normal(size=40))[:, None].astype(np.float32)
    stream[7] = np.nan
    trace = pfbr.run(Walk(), stream, inputs=np.zeros(40), method="exact", num_particles=256)
    scores = trace.scores(levels=[0.5, 0.9])
    mean, variance, expected, inside = 0.0, 4.0, [], []
    for y in stream[:, 0]:
        variance += 1.0
        spread = np.sqrt(variance + 0.25)
        expected.append(gaussian_crps(mean, spread, y))
        inside.append(np.nan if np.isnan(y) else float(abs(y - mean) < spread * norm.ppf(0.95)))
        if not np.isnan(y):
            gain = variance / (variance + 0.25)
            mean, variance = mean + gain * (y - mean), (1 - gain) * variance
    assert scores.crps.shape == (40, 1)
    assert scores.covered.shape == (2, 40, 1)
    np.testing.assert_allclose(scores.crps[:, 0], expected, atol=0.15)
    np.testing.assert_allclose(np.nanmean(scores.crps), np.nanmean(expected), rtol=0.02)
    assert abs(np.nanmean(scores.covered[1]) - np.nanmean(inside)) <= 1.5 / 39
    assert np.isnan(scores.crps[7]).all()
    summary = scores.summary()
    assert {"crps", "log_predictive", "coverage_90", "interval_score_50"} <= set(summary)
    many = pfbr.run(Walk(), np.stack([stream] * 2), inputs=np.zeros((2, 40)), method="exact", num_particles=256)
    np.testing.assert_allclose(np.nanmean(many.scores().crps, axis=(1, 2)), np.nanmean(expected), rtol=0.05)


def test_scores_are_those_of_the_forecasts_before_each_observation():
    trace = pfbr.run(SYSTEM, STREAM, method="exact", num_particles=32)
    session = pfbr.Session(SYSTEM, method="exact", num_particles=32, scores=True)
    for m, y in enumerate(STREAM):
        ahead = session.predict(horizon=1).observations.samples[0]
        details = session.update(y).info.details
        np.testing.assert_allclose(details["crps"], crps(ahead, y), rtol=1e-4)
        np.testing.assert_allclose(details["crps"], trace.scores().crps[m], rtol=1e-3)
        assert set(details) >= {"covered_50", "width_90", "interval_score_90"}


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ModelError, match="scored"):
        pfbr.Session(Unseen(SYSTEM.A, SYSTEM.B), scores=True)
    trace = pfbr.run(SYSTEM, STREAM, method="exact", num_particles=32)
    with pytest.raises(InputError, match="`levels`"):
        trace.scores(levels=90)
