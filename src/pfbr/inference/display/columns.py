"""Draws number by number, each with a name and its weights; and times as an axis understands them."""

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from pfbr.errors import InputError
from pfbr.inference.draws import Draws, weighted_quantile


class Column(NamedTuple):
    """One number: draws (…, n) and their weights (…, n), which sum to one."""

    name: str
    values: np.ndarray
    weights: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(np.sum(self.weights * self.values, axis=-1))

    @property
    def std(self) -> np.ndarray:
        return Draws(self.values, self.weights).std()

    def quantile(self, levels: Sequence[float]) -> np.ndarray:
        """(levels, …)"""
        return weighted_quantile(self.values[..., None], self.weights, np.asarray(levels, float))[..., 0]


def columns(draws: Draws, name: str, order: Sequence[str] = ()) -> list[Column]:
    """beta[0], beta[1], sigma, in the `order` of these names where a model declares them; a plain vector is called
    `name`, without a number where it has one element."""
    found = []
    leaves = jax.tree_util.tree_leaves_with_path(draws.values)  # in the order of the alphabet
    if order:
        leaves.sort(key=lambda pair: order.index(pair[0][0].key))
    for path, leaf in leaves:
        label = ".".join(str(getattr(part, "key", getattr(part, "idx", part))) for part in path)
        inner = leaf.shape[draws.weights.ndim :]
        bare = not label and inner == (1,)
        for index in np.ndindex(*inner):
            number = "" if bare or not index else f"[{','.join(map(str, index))}]"
            values = np.asarray(leaf[(..., *index)], float)
            found.append(Column((label or name) + number, values, draws.weights))
    return found


def density_curve(column: Column, cells: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """Where, and how dense: Gaussian kernels with Silverman's bandwidth on draws (n,), inside the range of the draws;
    nothing where they are all the same, or not finite."""
    low, first, third, high = column.quantile([0.001, 0.25, 0.75, 0.999])
    if not np.isfinite([low, high]).all() or high <= low:
        return np.empty(0), np.empty(0)
    spread = min(float(column.std), (third - first) / 1.349) or float(column.std)
    width = 0.9 * spread * np.sum(column.weights**2) ** 0.2  # n^(-1/5) of as many equally weighted draws
    at = np.linspace(max(low - 2 * width, column.values.min()), min(high + 2 * width, column.values.max()), cells)
    height = np.exp(-0.5 * ((at[:, None] - column.values) / width) ** 2) @ column.weights
    return at, height / height.max()


def limits(low: np.ndarray, high: np.ndarray) -> tuple[float, float] | None:
    """Ends of an axis for a band (T,): wide beginnings are cut off where they would hide all that came after."""
    later = slice(max(3, len(low) // 8), None)
    if len(low[later]) == 0 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    bottom, top = low[later].min(), high[later].max()
    if high.max() - low.min() < 2.5 * (top - bottom):
        return None
    return bottom - 0.5 * (top - bottom), top + 0.5 * (top - bottom)


def clock_words(times: np.ndarray) -> list[str]:
    """Times as a reader wants them: days without a time of day, moments without fractions of a second."""
    found = np.asarray(times)
    if found.dtype.kind != "M":
        return [f"{one:g}" if isinstance(one, float | np.floating) else str(one) for one in found]
    days = np.all(found == found.astype("datetime64[D]"))
    return [str(one).replace("T", " ") for one in found.astype("datetime64[D]" if days else "datetime64[s]")]


def chosen(found: list[Column], names: Sequence[str] | None, most: int) -> list[Column]:
    """Those with these names, or the first `most`; `beta` names all its elements."""
    if names is None:
        return found[:most]
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if not any(name in (one.name, one.name.split("[")[0]) for one in found):
            known = ", ".join(one.name for one in found[:12]) + (" …" if len(found) > 12 else "")
            raise InputError(f"there is nothing called {name!r} to plot; there are {known}.")
    return [one for name in wanted for one in found if name in (one.name, one.name.split("[")[0])]


def time_coordinate(times: Any) -> np.ndarray | None:
    """Times as numbers or as datetime64 (UTC); None where none came."""
    if times is None:
        return None
    array = np.asarray(times)
    if array.dtype.kind in "fiuM":
        return array
    return np.array([_moment(one) for one in array.reshape(-1)], "datetime64[us]").reshape(array.shape)


def _moment(time: Any) -> np.datetime64:
    if isinstance(time, datetime.datetime) and time.tzinfo is not None:
        time = time.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(time, "us")
