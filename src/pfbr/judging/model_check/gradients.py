"""Gradients of a model's densities against finite differences."""

from collections.abc import Callable

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.judging.model_check.findings import Notebook, NothingMoreToAsk
from pfbr.judging.model_check.laws import Case

POINTS, COORDINATES = 16, 24  # that are looked at, at most
WIDTH = 0.01  # of a finite difference, in standard deviations of x
SLOPE = 0.02  # share by which a gradient may differ, beyond what finite differences do not know themselves
SOME = 0.1  # share of the points at which it may be off: kinks are no fault
ROUNDING = 16 * float(np.finfo(np.float32).eps)  # of a value, relative


def check_gradient(
    book: Notebook,
    method: str,
    function: Callable,
    points: np.ndarray,
    cases: Case,
    spread: np.ndarray,
    labels: list[str],
    of: str = "x",
) -> None:
    """`jax.grad` of function(x, case) against central differences of two widths, whose own difference says how far to
    believe them."""
    num, dim = min(len(points), POINTS), points.shape[1]
    chosen = np.sort(np.random.default_rng(0).choice(dim, min(dim, COORDINATES), replace=False))
    width = WIDTH * np.maximum(spread, 1e-6)
    steps = np.diag(width)[chosen][:, None] * np.array([-2.0, -1.0, 1.0, 2.0])[:, None]  # (coordinates, 4, dim)

    def one(x, case):
        around = jax.vmap(jax.vmap(lambda step: function(x + step, case)))(jnp.asarray(steps, x.dtype))
        return jax.grad(function)(x, case)[chosen], around

    first = jax.tree.map(lambda leaf: leaf[:num], cases)
    try:
        found = book.call(method, jax.vmap(one), jnp.asarray(points[:num]), first)
    except NothingMoreToAsk:
        return
    slope, around = (np.asarray(part, float) for part in found)
    _conclude(
        book, method, f"has the right gradient by {of}", slope, around, width[chosen], [labels[i] for i in chosen]
    )


def _conclude(
    book: Notebook,
    method: str,
    question: str,
    slope: np.ndarray,
    around: np.ndarray,
    width: np.ndarray,
    labels: list[str],
) -> None:
    """The slopes (points, coordinates), and the values at two steps down, one down, one up, two up beside them."""
    if not np.isfinite(slope).all():
        share = 1 - np.isfinite(slope).all(axis=1).mean()
        found = f"NaN or inf at {100 * share:.0f} % of the points, where the value is finite"
        advice = "Often a `jnp.where` whose other branch is 0/0: make both branches finite before it."
        book.fault(method, question, found, advice)
        return
    inside = np.isfinite(around).all(axis=-1)  # a density may end beside a point
    around = np.where(inside[..., None], around, 0.0)
    near = (around[..., 2] - around[..., 1]) / (2 * width)
    far = (around[..., 3] - around[..., 0]) / (4 * width)
    allowed = SLOPE * np.maximum(np.maximum(np.abs(slope), np.abs(near)), 0.1 * np.median(np.abs(near), axis=0))
    allowed = allowed + 3 * np.abs(near - far) + ROUNDING * np.abs(around).max(-1) / width
    off = inside & (np.abs(slope - near) > allowed)
    shares = off.mean(axis=0)
    if shares.max() <= SOME:
        book.good(method, question, f"as finite differences at {len(slope)} points")
        return
    coordinate = int(np.argmax(shares))
    at = (int(np.argmax(off[:, coordinate])), coordinate)
    book.fault(
        method,
        question,
        f"{labels[coordinate]}: jax.grad says {slope[at]:.4g}, finite differences {near[at]:.4g}",
        "Look for stop_gradient, rounding, an index that should be a value, or a custom derivative.",
    )
