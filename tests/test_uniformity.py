"""Ranks against their exact law: enumerated where they are few, drawn where they are many; and sentences about them."""

import itertools

import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

from pfbr.judging.calibration.calibrate import CalibrationSettings, conclude
from pfbr.judging.calibration.ranks import rank
from pfbr.judging.calibration.uniformity import POINTS, ecdf, ecdf_band, p_values
from pfbr.particles.particles import normalise

CELLS = (np.arange(POINTS) + 0.5) / POINTS


@pytest.mark.parametrize("num", [1, 2])
def test_chances_are_those_of_all_cases_counted(num):
    """Each rank falls into one of 50 equal cells: with one or two ranks, all cases can be listed."""
    cases = np.array(list(itertools.product(CELLS, repeat=num))).T
    found = p_values(cases)
    counted = np.array([np.mean(found <= p * (1 + 1e-9)) for p in found])  # how many look at least as bad
    np.testing.assert_allclose(found, counted, rtol=1e-9)


def test_a_band_is_left_as_often_as_it_says_and_exactly_where_p_is_small():
    """4000 uniform samples of 100: the rate of leaving a 5 % band, to five standard errors (0.017)."""
    low, high = ecdf_band(100, 0.05)
    ranks = np.random.default_rng(1).uniform(size=(100, 4000))
    curves, p = ecdf(ranks), p_values(ranks)
    left = np.any((curves < low[:, None]) | (curves > high[:, None]), axis=0)
    assert 0.03 < left.mean() < 0.067
    np.testing.assert_array_equal(left, p <= 0.05)
    assert abs(np.mean(p <= 0.5) - 0.5) < 0.04  # five standard errors


def test_tiny_chances_are_accurate():
    """All of 100 ranks in the last cell, of 50: only that, and its mirror image, is as unlikely."""
    np.testing.assert_allclose(p_values(np.full((100, 1), 0.99)), 2 * 0.02**100, rtol=1e-9)


def test_ranks_of_one_more_draw_are_uniform_with_weights_and_with_ties():
    """Draws of N(0, 1); of N(0, 4) with weights; of a coin. The truth is of the same law. Kolmogorov at 1e-4."""

    @jax.jit
    @jax.vmap
    def ranks(key):
        keys = jax.random.split(key, 4)
        points, truth = jax.random.normal(keys[0], (200, 1)), jax.random.normal(keys[1], (1,))
        even, wide = jnp.full(200, -jnp.log(200.0)), 2 * points
        weights = normalise(-0.5 * wide[:, 0] ** 2 + 0.125 * wide[:, 0] ** 2)
        coins = rank(keys[3], even, (points > 0).astype(float), (truth > 0).astype(float))
        return rank(keys[2], even, points, truth)[0], rank(keys[3], weights, wide, truth)[0], coins[0]

    for found in ranks(jax.random.split(jax.random.key(0), 2000)):
        assert scipy.stats.kstest(np.asarray(found), "uniform").pvalue > 1e-4


def said(failing: dict[int, float], *, streams: int = 200, length: int = 25, lost: tuple[int, int] | None = None):
    """The verdict on ranks that are as even as can be, but for stages with ranks pressed to their middle."""
    even = np.broadcast_to(((np.arange(streams) + 0.5) / streams)[:, None, None], (streams, length, 3)).copy()
    for stage, factor in failing.items():
        even[:, stage - 1, 0] = 0.5 + factor * (even[:, stage - 1, 0] - 0.5)
    whole = np.ones((streams, length), bool)
    if lost is not None:
        whole[: lost[0], lost[1] - 1 :] = False
    return conclude(even, whole, CalibrationSettings(streams=streams, length=length))


@pytest.mark.parametrize(
    ("failing", "words"),
    [
        ({}, "Trust this operator on streams like these: at each of 25 stages"),
        ({7: 0.5, 8: 0.5}, "not trust this operator at observations 7 and 8 of 25:"),
        ({3: 0.5}, "not trust this operator at observation 3 of 25:"),
        (dict.fromkeys(range(3, 26), 0.5), "not trust this operator from observation 3 on:"),
        (dict.fromkeys(range(1, 26), 0.5), "not trust this operator from the first observation on:"),
        (dict.fromkeys(range(2, 21), 0.5), "not trust this operator at 19 of 25 observations, the first of them 2:"),
    ],
)
def test_the_sentence_names_the_stages_that_failed_and_no_others(failing, words):
    record = said(failing)
    assert words in record.verdict
    assert record.settings["failed_stages"] == list(failing)
    assert record.trusted is not bool(failing)
    if failing:
        assert "less than once in a billion times" in record.verdict
        assert record.settings["failed"] == {"x1": len(failing)}
        assert record.settings["advice"].startswith("This is no accident.")


def test_a_borderline_case_is_called_one_and_may_be_repeated():
    """The factor is searched for: the first that refuses, coming from what is even."""
    record = next(r for r in (said({5: f}) for f in np.arange(1, 0.5, -0.005)) if not r.trusted)
    p = record.settings["p_value"]
    assert 0.001 < p <= 0.05
    times = float(record.verdict.split("at most once in ")[1].split(" times")[0].replace(",", ""))
    assert times == pytest.approx(1 / p, rel=0.05)
    assert "one in 20 is refused" in record.settings["advice"]
    assert "--streams 800" in record.settings["advice"]


def test_particles_that_are_not_finite_are_said_and_not_ranked():
    record = said({}, lost=(3, 4))
    assert "from observation 4 on: in 3 of 200 streams its particles were no longer finite" in record.verdict
    assert np.isnan(record.arrays["ranks"][:3, 3:]).all()
    assert np.isfinite(record.arrays["ranks"][3:]).all()
    assert record.settings["p_value"] == 0
    assert not record.trusted
