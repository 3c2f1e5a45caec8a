"""Do draws come from a density? A test with bounded weights, for any number of cases at once.

Let q be the law of the draws, p the density they should have, and r a density that can be both drawn from and
evaluated. Where q = p, every bounded function h has

    E_q[h r / (p + r)] = E_r[h p / (p + r)],

since both are ∫ h p r / (p + r) (Meng and Wong's bridge). No weight exceeds one, so that nothing can blow up: supports
may be bounded, tails heavy, values discrete. r is fitted to one half of the draws, a product of histograms in whitened
coordinates, and the other half is tested with h = 1, Legendre polynomials of each coordinate's rank under r, products
of two of them, and the log ratio of the densities itself. h = 1 sees a density that is not normalised.
"""

import dataclasses
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

FALSE_ALARM = 5e-4  # chance that a test refuses draws that do come from the density
PROBABILITIES = np.unique(np.concatenate([np.linspace(0, 1, 25), [0.004, 0.015, 0.985, 0.996]]))  # of the bins' edges
FEW = 8  # a column with fewer different values than one for every so many draws is discrete
MAX_PAIRS = 16  # columns: with more of them, pairs are left out
LITTLE = 0.02  # mean weight (a half where r = p) below which a test hardly sees anything


class Agreement(NamedTuple):
    """What a test found. `z` is the largest deviation in standard errors, and `limit` the largest that is none.

    `log_integrals` (cases,) are log ∫ p where it was refused; `shape` says whether draws and density disagree beyond
    such a constant. `difference` says where, in words. `overlap` is the mean weight, at most a half.
    """

    z: float
    limit: float
    overlap: float
    log_integrals: np.ndarray
    shape: bool
    difference: str

    @property
    def refused(self) -> bool:
        return self.z > self.limit


def agreement(
    draws: np.ndarray, log_density: Callable[[np.ndarray], np.ndarray], labels: list[str], *, seed: int = 0
) -> Agreement:
    """Test draws (cases, n, k) against `log_density`, which takes (cases, n / 2, k) and gives (cases, n / 2)."""
    half = draws.shape[1] // 2
    fitted, tested = draws[:, :half].astype(float), draws[:, half : 2 * half].astype(float)
    rng = np.random.default_rng(seed)
    bridges = [Bridge.fit(case) for case in fitted]
    proposed = np.stack([bridge.sample(rng, half) for bridge in bridges])
    middles = _medians(log_density(fitted.astype(draws.dtype)), bridges, fitted)
    own = _Side.of(bridges, tested, log_density(tested.astype(draws.dtype)), middles)
    other = _Side.of(bridges, proposed, log_density(proposed.astype(draws.dtype)), middles)
    limit = _limit(own.features.shape)
    z = _deviations(own, other, np.zeros(len(bridges)))
    overlap = float(np.mean(own.weights(np.zeros(len(bridges)))))
    if np.max(np.abs(z)) <= limit:
        return Agreement(float(np.max(np.abs(z))), limit, overlap, np.zeros(len(bridges)), False, "")
    constants = np.array([_constant(own.log_ratio[m], other.log_ratio[m]) for m in range(len(bridges))])
    rest = _deviations(own, other, constants)[:, 1:]
    shape = bool(np.max(np.abs(rest)) > limit)
    worst = int(np.argmax(np.max(np.abs(rest if shape else z), axis=1)[: len(bridges)]))
    said = _difference(tested[worst], proposed[worst], other.log_ratio[worst], labels) if shape else ""
    return Agreement(float(np.max(np.abs(z))), limit, overlap, -constants, shape, said)


@dataclasses.dataclass(frozen=True)
class Histogram:
    """One coordinate: bins with probabilities, uniform within; or single values, where these are few."""

    edges: np.ndarray  # (b + 1,), or the (b,) values
    probabilities: np.ndarray  # (b,)
    discrete: bool

    @classmethod
    def fit(cls, values: np.ndarray) -> "Histogram":
        different, counts = np.unique(values, return_counts=True)
        if len(different) * FEW < len(values):
            return cls(different, counts / len(values), True)
        if np.all(different == np.round(different)):  # many whole numbers: bins between them
            edges = np.unique(np.round(np.quantile(values, PROBABILITIES))) - 0.5
            edges = np.append(edges, different[-1] + 0.5)
        else:
            edges = np.unique(np.quantile(values, PROBABILITIES))
        counts, _ = np.histogram(values, edges)
        kept = (counts + 0.5) / np.sum(counts + 0.5)
        return cls(edges, kept, False)

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return not self.discrete and bool(np.all(self.edges * 2 % 2 == 1))

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        index = rng.choice(len(self.probabilities), n, p=self.probabilities)
        if self.discrete:
            return self.edges[index]
        low, high = self.edges[index], self.edges[index + 1]
        values = low + (high - low) * rng.random(n)
        return np.clip(np.round(values), low + 0.5, high - 0.5) if self.whole else values

    def log_density(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            if self.discrete:
                index = np.clip(np.searchsorted(self.edges, values), 0, len(self.edges) - 1)
                return np.where(self.edges[index] == values, np.log(self.probabilities[index]), -np.inf)
            index = np.searchsorted(self.edges, values, side="right") - 1
            inside = (index >= 0) & (index < len(self.probabilities))
            index = np.clip(index, 0, len(self.probabilities) - 1)
            return np.where(inside, np.log(self.probabilities[index]) - np.log(np.diff(self.edges)[index]), -np.inf)

    def rank(self, values: np.ndarray) -> np.ndarray:
        """In [0, 1], uniform under the histogram (of discrete values, the middle of each one's share)."""
        below = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        if self.discrete:
            index = np.clip(np.searchsorted(self.edges, values), 0, len(self.edges) - 1)
            return below[index] + 0.5 * self.probabilities[index]
        return np.interp(values, self.edges, below)


@dataclasses.dataclass(frozen=True)
class Bridge:
    """r: independent histograms of y, where x = centre + L y for the continuous columns and x = y for the others."""

    centre: np.ndarray
    factor: np.ndarray
    histograms: tuple[Histogram, ...]

    @classmethod
    def fit(cls, draws: np.ndarray) -> "Bridge":
        k = draws.shape[1]
        plain = [Histogram.fit(column) for column in draws.T]
        smooth = np.array([not (h.discrete or h.whole) for h in plain])
        centre = np.where(smooth, np.median(draws, axis=0), 0.0)
        spread = np.quantile(draws, 0.84, axis=0) - np.quantile(draws, 0.16, axis=0)
        scale = np.where(smooth & (spread > 0), 0.5 * spread, 1.0)
        factor = scale[:, None] * np.linalg.cholesky(_rank_correlation(draws, smooth))
        y = np.linalg.solve(factor, (draws - centre).T).T
        histograms = tuple(Histogram.fit(y[:, i]) if smooth[i] else plain[i] for i in range(k))
        return cls(centre, factor, histograms)

    def whitened(self, points: np.ndarray) -> np.ndarray:
        y = np.linalg.solve(self.factor, (points - self.centre).T).T
        plain = [h.discrete or h.whole for h in self.histograms]
        return np.where(plain, points, y)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        y = np.stack([h.sample(rng, n) for h in self.histograms], axis=1)
        return self.centre + y @ self.factor.T

    def log_density(self, points: np.ndarray) -> np.ndarray:
        y = self.whitened(points)
        parts = sum(h.log_density(y[:, i]) for i, h in enumerate(self.histograms))
        return parts - np.sum(np.log(np.diagonal(self.factor)))

    def ranks(self, points: np.ndarray) -> np.ndarray:
        y = self.whitened(points)
        return np.stack([h.rank(y[:, i]) for i, h in enumerate(self.histograms)], axis=1)


class _Side(NamedTuple):
    """Points of one law: log p − log r (cases, n), the bounded functions h (cases, n, h)."""

    log_ratio: np.ndarray
    features: np.ndarray

    @classmethod
    def of(cls, bridges: list[Bridge], points: np.ndarray, log_p: np.ndarray, middles: np.ndarray) -> "_Side":
        log_r = np.stack([bridge.log_density(case) for bridge, case in zip(bridges, points, strict=True)])
        ratio = _ratio(log_p, log_r)
        features = [_features(bridge.ranks(case)) for bridge, case in zip(bridges, points, strict=True)]
        clipped = np.tanh(0.5 * (np.clip(ratio, -50, 50) - middles[:, None]))
        return cls(ratio, np.concatenate([np.stack(features), clipped[..., None]], axis=-1))

    def weights(self, constants: np.ndarray) -> np.ndarray:
        """r / (c p + r)"""
        return 1 / (1 + np.exp(np.clip(self.log_ratio + constants[:, None], -700, 700)))


def _ratio(log_p: np.ndarray, log_r: np.ndarray) -> np.ndarray:
    """log p − log r: +inf where r is zero, −inf where p is zero or no number."""
    log_p = np.nan_to_num(np.asarray(log_p, float), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(log_r), np.inf, log_p - log_r)


def _medians(log_p: np.ndarray, bridges: list[Bridge], points: np.ndarray) -> np.ndarray:
    log_r = np.stack([bridge.log_density(case) for bridge, case in zip(bridges, points, strict=True)])
    return np.median(np.clip(_ratio(log_p, log_r), -50, 50), axis=1)


def _features(u: np.ndarray) -> np.ndarray:
    """One, three Legendre polynomials of each rank, and products of the first ones of two."""
    t = 2 * u - 1
    columns = [np.ones((len(u), 1)), t, 1.5 * t**2 - 0.5, 2.5 * t**3 - 1.5 * t]
    if 1 < u.shape[1] <= MAX_PAIRS:
        i, j = np.triu_indices(u.shape[1], 1)
        columns.append(t[:, i] * t[:, j])
    return np.concatenate(columns, axis=1)


def _deviations(own: _Side, other: _Side, constants: np.ndarray) -> np.ndarray:
    """z of every function, (cases, h), and one more row for all cases together where there are several."""
    n = own.features.shape[1]
    mine = own.features * own.weights(constants)[..., None]
    theirs = other.features * (1 - other.weights(constants))[..., None]
    gap = mine.mean(1) - theirs.mean(1)
    variance = (mine.var(1) + theirs.var(1)) / n + 1 / n**2  # the last term: one draw more or less is no evidence
    z = gap / np.sqrt(variance)
    if len(z) == 1:
        return z
    return np.concatenate([z, (gap.sum(0) / np.sqrt(variance.sum(0)))[None]])


def _limit(shape: tuple[int, ...]) -> float:
    cases, _, functions = shape
    tests = functions * (cases + 1 if cases > 1 else 1)
    return NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * tests))


def _constant(own: np.ndarray, other: np.ndarray) -> float:
    """log c such that c p passes with h = 1: minus the log integral of p, by bisection."""
    low, high = -200.0, 200.0
    for _ in range(60):
        c = 0.5 * (low + high)
        mine = np.mean(1 / (1 + np.exp(np.clip(own + c, -700, 700))))
        theirs = np.mean(1 / (1 + np.exp(np.clip(-other - c, -700, 700))))
        low, high = (c, high) if mine > theirs else (low, c)
    return 0.5 * (low + high)


def _rank_correlation(draws: np.ndarray, smooth: np.ndarray) -> np.ndarray:
    """Correlations by ranks, which heavy tails cannot spoil; what cannot be told from zero is zero."""
    n, k = draws.shape
    if k == 1 or k * 16 > n:
        return np.eye(k)
    ranks = np.argsort(np.argsort(draws, axis=0), axis=0)
    found = 2 * np.sin(np.pi / 6 * np.corrcoef(ranks.T))
    found = np.where(np.abs(found) > 4 / math.sqrt(n), found, 0.0) * np.outer(smooth, smooth)
    np.fill_diagonal(found, 1.0)
    least = np.linalg.eigvalsh(found)[0]
    return found if least > 1e-3 else (found + (1e-3 - least) * np.eye(k)) / (1 + 1e-3 - least)


def _difference(draws: np.ndarray, proposed: np.ndarray, log_ratio: np.ndarray, labels: list[str]) -> str:
    """The moment in which draws and density differ most; the density's from weights p / r."""
    top = np.max(log_ratio)
    w = np.exp(log_ratio - top) if np.isfinite(top) else np.ones(len(proposed))
    w = w / w.sum()
    mean, wanted_mean = draws.mean(0), w @ proposed
    centred = proposed - wanted_mean
    cov, wanted_cov = np.atleast_2d(np.cov(draws.T)), (centred * w[:, None]).T @ centred
    std, wanted_std = np.sqrt(np.diagonal(cov)), np.sqrt(np.maximum(np.diagonal(wanted_cov), 0))
    safe = np.maximum(np.maximum(std, wanted_std), 1e-30)
    by_mean, by_std = np.abs(mean - wanted_mean) / safe, np.abs(std - wanted_std) / safe
    correlations = [m / np.maximum(np.outer(s, s), 1e-30) for m, s in ((cov, std), (wanted_cov, wanted_std))]
    off = np.triu(np.abs(correlations[0] - correlations[1]), 1)
    if max(by_mean.max(), by_std.max(), off.max()) < 0.05:
        return "means, standard deviations and correlations agree; tails or modes do not"
    if off.max() > max(by_mean.max(), by_std.max()):
        i, j = (int(n) for n in np.unravel_index(np.argmax(off), off.shape))
        found, wanted = (c[i, j] for c in correlations)
        return f"{labels[i]} and {labels[j]}: the draws have correlation {found:.2f}, the density {wanted:.2f}"
    i = int(np.argmax(np.maximum(by_mean, by_std)))
    return (
        f"{labels[i]}: the draws have mean {mean[i]:.3g} and std {std[i]:.3g}, the density mean {wanted_mean[i]:.3g} "
        f"and std {wanted_std[i]:.3g}"
    )
