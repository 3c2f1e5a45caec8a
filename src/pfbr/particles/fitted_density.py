"""A smooth density from draws, chosen by how likely it finds draws that were kept aside; and how good it is.

In the draws' own frame, where they have mean zero and covariance one, stand one Gaussian, mixtures of a few (by EM),
and kernels drawn to the mean (West 1993). Of those that predict the draws kept aside equally well, to two standard
errors, the simplest is taken, and fitted to all draws.
"""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.particles.mixtures import Distribution
from pfbr.particles.pareto import pareto_k
from pfbr.typing import Key, Point, Scalar

COMPONENTS = (2, 3, 4)
WIDTHS = (0.85, 0.7, 0.5, 0.35, 0.2)  # of kernels, in standard deviations; 1 would be the Gaussian
MOST_KERNELS = 1024  # more of them cost time at every evaluation and hardly change the density
BLOCKS = 32  # draws of a Markov chain are alike when near: whole blocks of them are kept aside, every fourth
PER_DIMENSION = 10  # fewer draws than this for each unknown are few: a covariance is then off by a third and more
HEAVY = 0.4  # k-hat of the distances from the mean: a tail that no Gaussian has
MISFIT = 0.1  # distance between distribution functions that is worth a flag, where it is significant


class FittedDensity(Distribution):
    """Σ_k w_k N(mean_k, scale_k scale_kᵀ), with one scale for each component or one for all."""

    log_weights: Float[Array, " c"]
    means: Float[Array, "c d"]
    scales: Float[Array, "s d d"]  # lower triangular; s is c or 1
    inverse_scales: Float[Array, "s d d"]

    @classmethod
    def of(cls, weights: np.ndarray, means: np.ndarray, scales: np.ndarray) -> "FittedDensity":
        arrays = (np.log(weights), means, scales, np.linalg.inv(scales))
        return cls(*(jnp.asarray(one, jnp.result_type(float)) for one in arrays))

    def sample(self, key: Key) -> Point:
        which_key, noise_key = jax.random.split(key)
        which = jax.random.categorical(which_key, self.log_weights)
        scale = self.scales[which if self.scales.shape[0] > 1 else 0]
        return self.means[which] + scale @ jax.random.normal(noise_key, self.means.shape[1:], self.means.dtype)

    def log_density(self, x: Point) -> Scalar:
        left = x - self.means
        shared = self.scales.shape[0] == 1
        z = left @ self.inverse_scales[0].T if shared else jnp.einsum("cij,cj->ci", self.inverse_scales, left)
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diagonal(self.scales, axis1=1, axis2=2))), axis=1)
        constant = log_det + 0.5 * x.shape[0] * jnp.log(2 * jnp.pi)
        return jax.nn.logsumexp(self.log_weights - 0.5 * jnp.sum(z**2, axis=1) - constant)

    def moments(self) -> tuple[Array, Array] | None:
        """Mean and covariance where it is one Gaussian; None where it is not."""
        return (self.means[0], self.scales[0] @ self.scales[0].T) if self.means.shape[0] == 1 else None


@dataclasses.dataclass(frozen=True)
class Quality:
    """How good a fit is. `held_out` is the mean log density of the draws kept aside, `gap` by how much those that were
    fitted are likelier, `misfit` the largest distance between the distribution functions of the draws kept aside and of
    the fit, `tail` the k-hat of the draws' distances from their mean. `reasons`: why not to trust it; none is good."""

    kind: str
    draws: int
    effective: float
    held_out: float
    gap: float
    misfit: float
    tail: float
    reasons: tuple[str, ...]

    @property
    def flagged(self) -> bool:
        return bool(self.reasons)


Law = tuple[np.ndarray, np.ndarray, np.ndarray]  # weights, means, scales, in the frame of the draws
Candidate = tuple[str, Callable[[np.ndarray], Law]]


def fit_density(draws: np.ndarray, *, effective: float | None = None) -> tuple[FittedDensity, Quality]:
    """The density of equally weighted draws (n, d), and its quality; `effective`: as how many independent ones they
    count, where that is known."""
    draws = np.asarray(draws, dtype=float)
    n, d = draws.shape
    mean, scale = _frame(draws)
    white = np.linalg.solve(scale, (draws - mean).T).T
    aside = (np.arange(n) * BLOCKS // n) % 4 == 3
    trained, held = white[~aside], white[aside]
    candidates = _candidates(len(trained), d)
    laws = [fit(trained) for _, fit in candidates]
    scores = np.stack([_log_density(law, held) for law in laws])
    best = scores[np.argmax(scores.mean(axis=1))]
    behind = best - scores
    error = behind.std(axis=1) / np.sqrt(len(held))
    # the first of those that are as good: they stand in the order of simplicity, and the best of many is partly luck
    chosen = int(np.argmax(behind.mean(axis=1) <= 2 * error))
    kind, fit = candidates[chosen]
    weights, means, scales = fit(white)
    density = FittedDensity.of(weights, mean + means @ scale.T, scale @ scales)
    count = float(len(np.unique(draws, axis=0)))
    quality = _quality(kind, trained, held, laws[chosen], min(count, effective or count), n)
    return density, dataclasses.replace(quality, held_out=quality.held_out - float(np.log(np.diag(scale)).sum()))


def _frame(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and a root of the covariance, found from correlations: free of units."""
    n, d = draws.shape
    std = draws.std(axis=0, ddof=1)
    correlation = np.corrcoef((draws - draws.mean(axis=0)) / std, rowvar=False).reshape(d, d)
    drawn = max(1e-9, 0.5 * (1 - (n - 1) / (2 * d)))  # few draws do not span all directions
    return draws.mean(axis=0), std[:, None] * np.linalg.cholesky((1 - drawn) * correlation + drawn * np.eye(d))


def _candidates(n: int, d: int) -> list[Candidate]:
    found: list[Candidate] = [("gaussian", _gaussian)]
    found += [(f"mixture of {k}", lambda x, k=k: _mixture(x, k)) for k in COMPONENTS if n >= 10 * k * (d + 1)]
    return found + [
        (f"kernels of width {h:g}", lambda x, h=h: _kernels(x, h)) for h in WIDTHS if n >= PER_DIMENSION * d
    ]


def _gaussian(x: np.ndarray) -> Law:
    d = x.shape[1]
    cov = np.cov(x, rowvar=False).reshape(d, d) + 1e-6 * np.eye(d)
    return np.ones(1), x.mean(axis=0)[None], np.linalg.cholesky(cov)[None]


def _kernels(x: np.ndarray, width: float) -> Law:
    """Drawn to the mean by √(1 − h²), so that mean and covariance stay what they were."""
    _, mean, scale = _gaussian(x)
    kept = x[np.linspace(0, len(x) - 1, min(len(x), MOST_KERNELS)).astype(int)]
    return np.full(len(kept), 1 / len(kept)), mean + np.sqrt(1 - width**2) * (kept - mean), width * scale


def _mixture(x: np.ndarray, components: int, *, rounds: int = 60) -> Law:
    """Gaussians by EM, from centres far apart; a little of the whole covariance keeps each of them from collapsing."""
    n, d = x.shape
    rng = np.random.default_rng(0)
    centres = [x[rng.integers(n)]]
    for _ in range(components - 1):
        nearest = np.min([np.sum((x - c) ** 2, axis=1) for c in centres], axis=0)
        centres.append(x[rng.choice(n, p=nearest / nearest.sum())])
    means = np.stack(centres)
    weights, scales = np.full(components, 1 / components), np.repeat(0.7 * np.eye(d)[None], components, axis=0)
    before = -np.inf
    for _ in range(rounds):
        logs = _each_log_density((weights, means, scales), x)
        likely = np.logaddexp.reduce(logs, axis=1, keepdims=True)
        if likely.mean() < before + 1e-5:
            break
        before, share = likely.mean(), np.exp(logs - likely)
        total = share.sum(axis=0) + 1e-9
        weights, means = total / total.sum(), (share.T @ x) / total[:, None]
        for k in range(components):
            left = x - means[k]
            prior = d + 2  # as if so many draws of a narrower whole had been seen
            cov = ((share[:, k, None] * left).T @ left + 0.1 * prior * np.eye(d)) / (total[k] + prior)
            scales[k] = np.linalg.cholesky(cov)
    return weights, means, scales


def _each_log_density(law: Law, x: np.ndarray) -> np.ndarray:
    weights, means, scales = law
    d = x.shape[1]
    if len(scales) == 1:
        a, b = (np.linalg.solve(scales[0], one.T).T for one in (x, means))
        square = np.sum(a**2, 1)[:, None] + np.sum(b**2, 1) - 2 * a @ b.T
    else:
        each = [np.linalg.solve(s, (x - m).T) for m, s in zip(means, scales, strict=True)]
        square = np.stack([np.sum(z**2, axis=0) for z in each], axis=1)
    log_det = np.log(np.diagonal(scales, axis1=1, axis2=2)).sum(axis=1)
    return np.log(weights) - 0.5 * square - log_det - 0.5 * d * np.log(2 * np.pi)


def _log_density(law: Law, x: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(_each_log_density(law, x), axis=1)


def _quality(kind: str, trained: np.ndarray, held: np.ndarray, law: Law, effective: float, n: int) -> Quality:
    d = trained.shape[1]
    held_out, fitted = _log_density(law, held), _log_density(law, trained)
    drawn = _drawn(law, 4096)
    marginals = [(held[:, j], drawn[:, j]) for j in range(d)]
    distances = [_distance(a, b) for a, b in [*marginals, (held_out, _log_density(law, drawn))]]
    pairs = len(held) * len(drawn) / (len(held) + len(drawn))
    significant = np.sqrt(-0.5 * np.log(0.0005 / (d + 1)) / pairs)  # one false alarm in a thousand, over all of them
    both = np.concatenate([trained, held])
    tail = float(pareto_k(jnp.asarray(np.log(np.linalg.norm(both, axis=1) + 1e-30), jnp.float32)))
    gap = float(fitted.mean() - held_out.mean())
    reasons = []
    if effective < PER_DIMENSION * d:
        reasons.append(
            f"few draws: {effective:.0f} different ones for {d} unknowns, of which each wants {PER_DIMENSION}"
        )
    if np.isfinite(tail) and tail > HEAVY:
        reasons.append(f"heavy tails: k-hat of the distances is {tail:.2f}, and the fit's tails are Gaussian")
    if max(distances) > max(MISFIT, significant):
        where = int(np.argmax(distances))
        what = f"coordinate {where} of the whitened draws" if where < d else "the log density of the draws"
        reasons.append(f"a poor fit: {what} differs from the fit's by {max(distances):.2f} in distribution")
    return Quality(kind, n, effective, float(held_out.mean()), gap, float(max(distances)), tail, tuple(reasons))


def _drawn(law: Law, num: int) -> np.ndarray:
    weights, means, scales = law
    rng = np.random.default_rng(1)
    which = rng.choice(len(weights), num, p=weights / weights.sum())
    noise = rng.normal(size=(num, means.shape[1]))
    return means[which] + np.einsum("nij,nj->ni", scales[which if len(scales) > 1 else np.zeros(num, int)], noise)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference between two distribution functions (Kolmogorov and Smirnov)."""
    at = np.concatenate([a, b])
    below = [np.searchsorted(np.sort(one), at, "right") / len(one) for one in (a, b)]
    return float(np.max(np.abs(below[0] - below[1])))
