"""Scores of samples against their definitions and against the Gaussian's formulas."""

import numpy as np
import pytest
from scipy.stats import norm

from pfbr.errors import InputError
from pfbr.particles.sample_scores import crps, interval_scores


def gaussian_crps(mean, std, y):
    """Gneiting and Raftery (2007), equation 5."""
    z = (y - mean) / std
    return std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def test_crps_is_its_definition_over_pairs():
    rng = np.random.default_rng(0)
    samples, y = rng.normal(size=(3, 7, 2)), rng.normal(size=(3, 2))
    distance = np.abs(samples[:, :, None] - samples[:, None])
    pairs = distance.sum(axis=(1, 2)) / (7 * 6)
    expected = np.abs(samples - y[:, None]).mean(axis=1) - 0.5 * pairs
    np.testing.assert_allclose(crps(samples, y, axis=1), expected, rtol=1e-12)


def test_crps_is_fair_and_the_gaussians_formula():
    """Averaged over many samples of five it is the law's own score: z = 5 over 4000 samples, in each of two cases."""
    rng = np.random.default_rng(1)
    for y in (0.3, 2.5):
        each = crps(1.5 * rng.normal(size=(5, 4000)), np.full(4000, y))
        assert abs(each.mean() - gaussian_crps(0.0, 1.5, y)) < 5 * each.std() / np.sqrt(4000)
    quantiles = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    np.testing.assert_allclose(crps(quantiles, 0.7), gaussian_crps(0.0, 1.0, 0.7), atol=1e-4)


def test_crps_far_from_zero_loses_nothing():
    samples = np.random.default_rng(2).normal(size=64)
    np.testing.assert_allclose(crps(samples + 1e9, 1e9 + 0.5), crps(samples, 0.5), atol=1e-6)


def test_interval_scores_of_known_edges():
    samples = np.arange(100.0)  # Hazen: the quantile p lies at 100 p − 0.5
    for y, missed in ((50.0, 0.0), (2.0, 2.5), (97.0, 2.5)):
        got = interval_scores(samples, y, [0.9])
        np.testing.assert_allclose(got.width, [90.0])
        np.testing.assert_allclose(got.score, [90.0 + 2 / 0.1 * missed])
        np.testing.assert_array_equal(got.covered, [float(missed == 0)])


def test_what_was_not_observed_has_no_score():
    samples = np.random.default_rng(3).normal(size=(16, 2))
    assert np.isnan(crps(samples, [np.nan, 0.0])).tolist() == [True, False]
    for one in interval_scores(samples, [np.nan, 0.0], [0.5, 0.9]):
        assert np.isnan(one).tolist() == [[True, False]] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crps([1.0], 0.0), "two draws"),
        (lambda: crps(np.zeros((4, 3)), np.zeros(2)), "shape of `observed`"),
        (lambda: interval_scores(np.zeros(4), 0.0, [1.0]), "`levels`"),
        (lambda: interval_scores(np.zeros(4), 0.0, []), "`levels`"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
