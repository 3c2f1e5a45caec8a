"""Weighted draws on the user's own scale: means, spreads, quantiles and samples, as arrays or as a dict of them."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pfbr.errors import InputError
from pfbr.models.unknowns import Unknowns
from pfbr.typing import Numbers


class Draws:
    """Draws (…, n, *shape) as a tree of NumPy arrays, and their weights (…, n), which sum to one."""

    def __init__(self, values: Any, weights: np.ndarray):
        self.values, self.weights = values, weights
        self._axis = weights.ndim - 1  # the axis of the draws

    @classmethod
    def of(cls, points: Numbers, log_weights: Numbers, unknowns: Unknowns | None) -> "Draws":
        """From flat points (…, n, d) of free numbers."""
        flat, weights = np.asarray(points), np.exp(np.asarray(log_weights, dtype=float))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        if unknowns is None:
            return cls(flat, weights)
        named = _constrained(unknowns, flat.reshape(-1, flat.shape[-1]))
        return cls({k: np.asarray(v).reshape(*flat.shape[:-1], *v.shape[1:]) for k, v in named.items()}, weights)

    def _each(self, function: Callable[[np.ndarray], np.ndarray]) -> Any:
        return jax.tree.map(function, self.values)

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return np.einsum("...n,...nk->...k", self.weights, self._flat(values)).reshape(self._without_draws(values))

    def _flat(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values, dtype=float).reshape(*self.weights.shape, -1)

    def _without_draws(self, values: np.ndarray) -> tuple[int, ...]:
        return (*values.shape[: self._axis], *values.shape[self._axis + 1 :])

    def mean(self) -> Any:
        """(…, *shape)"""
        return self._each(self._mean)

    def std(self) -> Any:
        """(…, *shape); with equal weights the unbiased variance's root."""

        def one(values: np.ndarray) -> np.ndarray:
            flat = self._flat(values)
            centred = flat - np.einsum("...n,...nk->...k", self.weights, flat)[..., None, :]
            left = np.maximum(1.0 - np.sum(self.weights**2, axis=-1), 1e-12)[..., None]
            return np.sqrt(np.einsum("...n,...nk->...k", self.weights, centred**2) / left).reshape(
                self._without_draws(values)
            )

        return self._each(one)

    def quantile(self, q: Numbers) -> Any:
        """Quantiles of each number: shape (*q.shape, …, *shape), quantiles first as NumPy has them."""
        levels = np.asarray(q, dtype=float)
        if np.any((levels < 0) | (levels > 1)) or np.any(np.isnan(levels)):
            raise InputError(f"a quantile lies between 0 and 1; got {q}.")

        def one(values: np.ndarray) -> np.ndarray:
            found = weighted_quantile(self._flat(values), self.weights, levels.reshape(-1))
            return found.reshape(*levels.shape, *self._without_draws(values))

        return self._each(one)

    @property
    def samples(self) -> Any:
        """As many equally weighted draws: the draws themselves where weights are equal, resampled otherwise."""
        kept = systematic_indices(self.weights)

        def one(values: np.ndarray) -> np.ndarray:
            index = kept.reshape(*kept.shape, *(1,) * (values.ndim - kept.ndim))
            return np.take_along_axis(values, index, axis=self._axis)

        return self._each(one)

    def expectation(self, function: Callable) -> np.ndarray:
        """E[function(x)] of a single set of draws, for a function of one x, written with NumPy or JAX."""
        n = self.weights.shape[-1]
        each = [jax.tree.map(lambda values, i=i: values[i], self.values) for i in range(n)]
        return np.tensordot(self.weights, np.stack([np.asarray(function(x)) for x in each]), axes=1)


@jax.jit
def _constrained(unknowns: Unknowns, points: Any) -> dict[str, Any]:
    """Free numbers (n, d) on the user's scale; compiled once for all posteriors of the same unknowns."""
    return jax.vmap(unknowns.constrain)(points)


def weighted_covariance(points: Numbers, log_weights: Numbers) -> np.ndarray:
    """(…, d, d) of flat points (…, n, d); with equal weights the unbiased one. In NumPy: one posterior is too small a
    thing to hand to a compiled function piece by piece."""
    flat, weights = np.asarray(points, dtype=float), np.exp(np.asarray(log_weights, dtype=float))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    centred = flat - np.einsum("...n,...nk->...k", weights, flat)[..., None, :]
    spread = np.swapaxes(weights[..., None] * centred, -1, -2) @ centred
    return spread / np.maximum(1.0 - np.sum(weights**2, axis=-1), 1e-12)[..., None, None]


def weighted_quantile(values: np.ndarray, weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles (levels, …, k) of values (…, n, k): the weight below, to the middle of each draw, interpolated."""
    order = np.argsort(values, axis=-2)
    ordered = np.take_along_axis(values, order, axis=-2)
    own = np.take_along_axis(np.broadcast_to(weights[..., None], values.shape), order, axis=-2)
    middle = np.cumsum(own, axis=-2) - 0.5 * own
    *lead, n, k = values.shape
    rows = np.moveaxis(ordered, -2, -1).reshape(-1, n), np.moveaxis(middle, -2, -1).reshape(-1, n)
    found = np.stack([np.interp(levels, m, x) for x, m in zip(*rows, strict=True)], axis=-1)
    return found.reshape(len(levels), *lead, k)


def systematic_indices(weights: np.ndarray) -> np.ndarray:
    """Which draws (…, n) to keep so that all count the same; every one once where the weights are equal."""
    n = weights.shape[-1]
    positions = (np.arange(n) + 0.5) / n
    below = np.cumsum(weights, axis=-1)
    rows = (below / below[..., -1:]).reshape(-1, n)
    found = np.stack([np.searchsorted(row, positions) for row in rows])
    return np.minimum(found, n - 1).reshape(weights.shape)
