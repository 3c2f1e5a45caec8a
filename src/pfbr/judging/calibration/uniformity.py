"""Are these ranks uniform? Simultaneous bands about their ECDF, and how often chance alone looks as bad, exactly.

The ECDF is looked at in 49 points. The pointwise tail of a count is twice the smaller binomial probability beyond it,
and the worst tail of the 49 is the statistic (Säilynoja, Bürkner and Vehtari 2022). Its law needs no simulation: counts
of uniform ranks are those of a Poisson process, given their number, with independent increments from point to point.
"""

import numpy as np
from scipy import special, stats

POINTS = 50  # the ECDF is looked at in 1/50 … 49/50


def ecdf(ranks: np.ndarray) -> np.ndarray:
    """Share of the streams (first axis) with a rank at most z, for z = 1/50 … 49/50."""
    points = np.arange(1, POINTS) / POINTS
    return np.mean(ranks[None] <= points.reshape(-1, *[1] * ranks.ndim), axis=1)


def ecdf_band(num: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends that the ECDF of `num` uniform ranks leaves anywhere with at most the probability `level`.

    Binomial intervals at every point, all with the same pointwise tail: the widest such band that is not too wide.
    """
    tails = _tails(num)
    candidates = np.unique(tails)
    first, last = 0, len(candidates) - 1  # bisection; below every candidate lies the band that is never left
    while first < last:
        middle = (first + last) // 2
        if _chance_of_leaving(tails > candidates[middle]) <= level:
            first = middle + 1
        else:
            last = middle
    inside = tails >= candidates[first]
    counts = np.arange(num + 1)
    return counts[np.argmax(inside, axis=1)] / num, counts[num - np.argmax(inside[:, ::-1], axis=1)] / num


def p_values(ranks: np.ndarray) -> np.ndarray:
    """For each column of ranks (first axis: streams), the chance that as many uniform ranks look at least as bad.

    Sums of positive terms only, so that chances of 1e-100 are as accurate as any.
    """
    num = ranks.shape[0]
    tails = _tails(num)
    counts = np.rint(ecdf(ranks) * num).astype(int)
    points = np.arange(POINTS - 1).reshape(-1, *[1] * (counts.ndim - 1))
    worst = np.min(tails[points, counts], axis=0)
    values, places = np.unique(worst, return_inverse=True)  # few differ: each chance is computed once
    chances = np.array([_chance_of_leaving(tails > value) for value in values])
    return chances[places].reshape(worst.shape)


def _tails(num: int) -> np.ndarray:
    """(point, count): twice the smaller of P(at most the count) and P(at least the count)."""
    points, counts = np.arange(1, POINTS)[:, None] / POINTS, np.arange(num + 1)
    below, above = stats.binom.cdf(counts, num, points), stats.binom.sf(counts - 1, num, points)
    tails = np.minimum(1.0, 2 * np.minimum(below, above))
    return np.minimum(tails, tails[::-1, ::-1])  # mirror images are equal, to the last bit


def _chance_of_leaving(inside: np.ndarray) -> float:
    """That the counts of uniform ranks are not `inside` (point, count) at some point; first exits, added up."""
    num = inside.shape[1] - 1
    numbers = np.arange(num + 1)
    log_factorials = special.gammaln(numbers + 1.0)

    def poisson(counts: np.ndarray, rate: float) -> np.ndarray:
        return np.exp(counts * np.log(rate) - rate - log_factorials[counts])

    steps = poisson(numbers, num / POINTS)
    steps = steps[: np.flatnonzero(steps)[-1] + 1]
    total, start, held = 0.0, 0, np.array([1.0])  # `held`: P(count, never outside so far) for counts from `start` on
    for point, allowed in enumerate(inside, start=1):
        held = np.convolve(held, steps)[: num + 1 - start]
        counts = start + np.arange(len(held))
        out = ~allowed[counts]
        total += float(held[out] @ poisson(num - counts[out], num * (1 - point / POINTS)))  # and all `num` in the end
        kept = np.flatnonzero(~out)
        if not kept.size:
            break
        held, start = np.where(out, 0.0, held)[kept[0] : kept[-1] + 1], start + int(kept[0])
    return min(1.0, total / float(poisson(numbers[-1:], num)[0]))
