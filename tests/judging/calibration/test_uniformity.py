"""Ranks against their exact law: enumerated where they are few, drawn where they are many."""

import itertools

import numpy as np
import pytest

from pfbr.judging.calibration.uniformity import POINTS, ecdf, ecdf_band, p_values

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
