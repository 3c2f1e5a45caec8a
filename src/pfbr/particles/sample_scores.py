"""Proper scores of a forecast that is a sample: CRPS and the interval score, number by number.

Both are in the units of the observation, and smaller is better (Gneiting and Raftery 2007). NaN is what was not
observed.
"""

from typing import NamedTuple

import numpy as np

from pfbr.errors import InputError
from pfbr.typing import Numbers


class IntervalScores(NamedTuple):
    """Of central intervals, levels first: whether the observation lies inside (1 or 0), the width, the score."""

    covered: np.ndarray
    width: np.ndarray
    score: np.ndarray


def crps(samples: Numbers, observed: Numbers, *, axis: int = 0) -> np.ndarray:
    """mean |X − y| − ½ mean |X − X'| over pairs of different draws, which run along `axis`.

    Leaving a draw's distance to itself out makes the score fair: its expectation is that of the law behind the draws
    (Ferro 2014). Sorted, the pairs are one sum: Σ_{i<j} (x_j − x_i) = Σ_i (2i − n − 1) x_i.
    """
    values, y = _aligned(samples, observed, axis)
    n = values.shape[axis]
    if n < 2:
        raise InputError(f"the CRPS of a sample needs at least two draws; got {n}.")
    rank = (2.0 * np.arange(1, n + 1) - n - 1).reshape(-1, *(1,) * (values.ndim - axis - 1))
    centred = values - np.expand_dims(y, axis)  # about the observation: small differences of large numbers lose nothing
    spread = np.sum(rank * np.sort(centred, axis=axis), axis=axis) / (n * (n - 1))
    return np.asarray(np.mean(np.abs(centred), axis=axis) - spread)


def interval_scores(samples: Numbers, observed: Numbers, levels: Numbers, *, axis: int = 0) -> IntervalScores:
    """Central intervals of each level: u − l, and 2/α times the distance by which the observation misses them."""
    values, y = _aligned(samples, observed, axis)
    levels = checked_levels(levels)
    alpha = (1.0 - levels).reshape(-1, *(1,) * y.ndim)
    # Hazen's rule, as posteriors' quantiles have it
    edges = np.quantile(values, np.concatenate([(1 - levels) / 2, (1 + levels) / 2]), axis=axis, method="hazen")
    lower, upper = np.split(edges, 2)
    missed = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    width = upper - lower
    seen = ~np.isnan(y)
    return IntervalScores(
        np.where(seen, ((y >= lower) & (y <= upper)).astype(float), np.nan),
        np.where(seen, width, np.nan),
        width + 2.0 / alpha * missed,
    )


def checked_levels(levels: Numbers) -> np.ndarray:
    """Probabilities of central intervals, (L,)."""
    array = np.atleast_1d(np.asarray(levels, dtype=float))
    if array.ndim != 1 or array.size == 0 or not np.all((array > 0) & (array < 1)):
        raise InputError(f"`levels` are probabilities of intervals, between 0 and 1, e.g. (0.5, 0.9); got {levels!r}.")
    return array


def _aligned(samples: Numbers, observed: Numbers, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Both in float64; the observation has every axis but that of the draws."""
    values, y = np.asarray(samples, dtype=float), np.asarray(observed, dtype=float)
    if values.ndim <= axis or values.shape[:axis] + values.shape[axis + 1 :] != y.shape:
        raise InputError(
            f"`samples` must have the shape of `observed`, {y.shape}, and the draws along axis {axis}; got "
            f"{values.shape}."
        )
    return values, y
