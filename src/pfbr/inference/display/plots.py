"""Figures with matplotlib: marginal densities, and what was or will be believed over time."""

from __future__ import annotations

import contextlib
import importlib
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pfbr.errors import InputError
from pfbr.inference.display.columns import Column, chosen, density_curve, limits, time_coordinate
from pfbr.inference.display.looks import BANDS, GRID, INK, OURS, SEEN, STYLE, TRUTH

MOST = 12  # pictures in a figure, unless names are given


def marginals(found: list[Column], *, names: Sequence[str] | None, axes: Any, truth: Any = None) -> Any:
    """A density for each number (n,), its central 90 % darker; `truth` as a line, by name or in their order."""
    shown = chosen(found, names, MOST)
    with _house() as kit:
        figure, places = kit.places(axes, len(shown), across=min(4, len(shown)), size=(2.7, 2.2))
        for axis, one in zip(places, shown, strict=False):
            _density(axis, one)
            value = _true_of(truth, one.name, found)
            if value is not None:
                value = _as_long_as((), value, "truth", one.name)
                axis.axvline(float(value), color=TRUTH, linestyle="--", linewidth=1.3)
            _finish(axis, one.name)
            axis.set_yticks([])
            axis.spines["left"].set_visible(False)
        return figure


def paths(
    found: list[Column],
    x: Any,
    *,
    x_label: str,
    names: Sequence[str] | None,
    axes: Any,
    truth: Any = None,
    past: Any = None,
    past_times: Any = None,
) -> Any:
    """Median, central 50 % and 90 % of draws (T, n) over x; dots for what was seen, a dashed line for what was so."""
    shown = chosen(found, names, MOST)
    across = 1 if len(shown) <= 3 else 2
    with _house() as kit:
        figure, places = kit.places(axes, len(shown), across=across, size=(7.5 if across == 1 else 4.6, 2.3))
        for axis, one in zip(places, shown, strict=False):
            _fan(axis, x, one)
            value, seen = _true_of(truth, one.name, found), _true_of(past, one.name, found)
            if seen is not None:
                seen = _as_long_as(np.shape(past_times), seen, "past", one.name)
                axis.plot(past_times, seen, "o", markersize=2.6, color=SEEN, alpha=0.8)
            if value is not None:
                value = _as_long_as(np.shape(x), value, "truth", one.name)
                axis.plot(x, value, color=TRUTH, linestyle="--", linewidth=1.2)
            _finish(axis, one.name, x_label)
        return figure


def _density(axis: Any, column: Column) -> None:
    at, tall = density_curve(column)
    if not len(at):
        axis.axvline(column.values[0], color=OURS)
        return
    low, high = column.quantile([(1 - BANDS[1]) / 2, (1 + BANDS[1]) / 2])
    axis.fill_between(at, tall, color=OURS, alpha=0.25, linewidth=0)
    axis.fill_between(at, tall, where=(at >= low) & (at <= high), color=OURS, alpha=0.45, linewidth=0)
    axis.plot(at, tall, color=OURS, linewidth=1.3)
    axis.set_ylim(0, 1.06)


def _fan(axis: Any, x: Any, column: Column) -> None:
    for i, band in enumerate(reversed(BANDS)):
        low, high = column.quantile([0.5 - band / 2, 0.5 + band / 2])
        axis.fill_between(x, low, high, color=OURS, alpha=0.16 + 0.14 * i, linewidth=0)
    marker = "o" if len(column.values) < 12 else None
    axis.plot(x, column.quantile([0.5])[0], color=OURS, linewidth=1.5, marker=marker, markersize=3)
    ends = limits(*column.quantile([(1 - BANDS[1]) / 2, (1 + BANDS[1]) / 2]))
    if ends is not None:
        axis.set_ylim(*ends)


def _finish(axis: Any, title: str, x_label: str = "") -> None:
    axis.set_title(title.replace("$", r"\$"), fontsize=10, color=INK, loc="left")
    axis.set_xlabel(x_label)
    axis.grid(axis="y", color=GRID)
    axis.set_axisbelow(True)


def _true_of(given: Any, name: str, found: list[Column]) -> Any:
    """What a user gave for one number: by name in a dict, or in the last axis of an array, in the order of all."""
    if given is None:
        return None
    base, _, inner = name.partition("[")
    if isinstance(given, dict):
        known = {one.name for one in found} | {one.name.partition("[")[0] for one in found}
        for word in given:
            if word not in known:
                raise InputError(f"there is nothing called {word!r} to plot; there is {', '.join(sorted(known))}.")
        if name in given or base not in given:
            return given.get(name)
        values = np.asarray(given[base], float)
        index: Any = tuple(int(i) for i in inner.rstrip("]").split(",")) if inner else ()
        return values[(..., *index)]
    values = np.asarray(given, float)
    if len(found) == 1 and values.shape[-1:] != (1,):
        return values
    if values.shape[-1:] != (len(found),):
        raise InputError(
            f"expected the {len(found)} numbers that are plotted in the last axis, or a dict by name; got shape "
            f"{values.shape}."
        )
    return values[..., [one.name for one in found].index(name)]


def _as_long_as(shape: tuple[int, ...], given: Any, what: str, name: str) -> np.ndarray:
    """What was given for one number, at every stage: one value stands for all of them."""
    values = np.asarray(given, float)
    if values.size == 1:
        values = values.reshape(())
    if values.shape not in ((), shape):
        wanted = "one number" if shape == () else f"one number, or one for each of {shape[0]} stages,"
        raise InputError(f"`{what}` must have {wanted} for {name}; got shape {values.shape}.")
    return np.broadcast_to(values, shape)


def axis_of(times: Any, length: int) -> tuple[np.ndarray, str]:
    """Where the stages stand, and what that axis is called."""
    found = time_coordinate(times)
    if found is None:
        return np.arange(1, length + 1), "observation"
    return found, "" if found.dtype.kind == "M" else "time"


class _Kit:
    """matplotlib, in the house's looks."""

    def __init__(self) -> None:
        self.figures = importlib.import_module("matplotlib.figure")

    def places(self, axes: Any, count: int, *, across: int, size: tuple[float, float]) -> tuple[Any, list]:
        """The figure and a place for each picture: on the user's axes, or on a figure of our own."""
        if axes is not None:
            places = list(np.ravel(np.asarray(axes, dtype=object)))
            if len(places) < count:
                raise InputError(f"{count} pictures need as many axes; got {len(places)}. Name fewer in `names`.")
            return places[0].figure, places
        down = math.ceil(count / across)
        figure = _shown_by_notebooks(self.figures.Figure)(
            figsize=(size[0] * across, size[1] * down), layout="constrained", facecolor="white"
        )
        places = list(figure.subplots(down, across, squeeze=False).ravel())
        for empty in places[count:]:
            empty.set_visible(False)
        return figure, places


def _shown_by_notebooks(figure: type) -> type:
    """A figure that a notebook shows once, as it is returned, whatever the backend."""

    def as_png(self: Any) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=110)
        return file.getvalue()

    return type("Figure", (figure,), {"_repr_png_": as_png})


@contextlib.contextmanager
def _house() -> Iterator[_Kit]:
    """The house's looks, for as long as something is drawn."""
    try:
        library = importlib.import_module("matplotlib")
    except ImportError:
        raise InputError(
            'pictures need matplotlib: `pip install matplotlib`, or `pip install "pfbr[cli]"`, which has it.'
        ) from None
    with library.rc_context(STYLE):
        yield _Kit()
