"""Charts to SVG and PNG for papers and talks: draws what the records hold, computes nothing."""

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pfbr.inference.display.looks import GRID, INK, STYLE
from pfbr.io.files import atomic
from pfbr.reporting.parts import LOOKS, Chart, Drawing, Series


def draw_figure(directory: Path, name: str, charts: Sequence[Chart] | Drawing) -> list[Path]:
    """NAME.svg and NAME.png in the directory."""
    with matplotlib.rc_context({**STYLE, "font.size": 10}):
        figure = charts() if callable(charts) else side_by_side(charts)
        return [save_figure(figure, directory / f"{name}.{kind}") for kind in ("svg", "png")]


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure in the format of its file's name, without the date of the day."""
    kind = path.suffix.removeprefix(".")
    with atomic(path) as file:
        figure.savefig(file, format=kind, dpi=120, metadata={"png": {"Software": None}, "svg": {"Date": None}}[kind])
    return path


def side_by_side(charts: Sequence[Chart]) -> Figure:
    """The charts, up to four in a row, and one legend below."""
    columns = len(charts) if len(charts) <= 3 else 2 if len(charts) <= 6 else 4  # pairs stay together
    rows = math.ceil(len(charts) / columns)
    size = (max(7.5, 4.2 * columns), (4.6 if columns == 1 else 3.5) * rows + 0.7)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, chart in zip(axes, charts, strict=False):
        _draw(axis, chart)
    for axis in axes[len(charts) :]:
        axis.set_visible(False)
    handles = _legend(charts)
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    across = min(len(handles), max(1, int(size[0] / (0.6 + 0.075 * longest))))  # inches of a line, and of a letter
    figure.legend(handles=handles, loc="outside lower center", ncols=across, frameon=False, fontsize=9)
    return figure


def _draw(axis: Axes, chart: Chart) -> None:
    axis.set_xscale(chart.x_scale)
    _set_y_scale(axis, chart)
    if chart.zero:
        axis.axhline(0.0, color=INK, linewidth=0.8)
    if chart.frontier:
        x, y = zip(*chart.frontier, strict=True)
        axis.step(x, y, where="post", color=INK, linewidth=1.0, alpha=0.5)
    for series in chart.series:
        _draw_series(axis, chart, series)
    axis.set_title(chart.title, fontsize=10, color=INK, loc="left")
    axis.set(xlabel=chart.x_label, ylabel=chart.y_label)
    if chart.y_limits is not None:
        axis.set_ylim(*chart.y_limits)
    axis.grid(axis="y", color=GRID)
    axis.set_axisbelow(True)


def _set_y_scale(axis: Axes, chart: Chart) -> None:
    """Logarithmic only where there is something to bend, with plain numbers at the ticks."""
    largest = max((abs(v) for s in chart.series for v in s.y if math.isfinite(v)), default=0.0)
    if chart.y_scale == "symlog" and largest > chart.linear_to:
        axis.set_yscale("symlog", linthresh=chart.linear_to)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    elif chart.y_scale == "log":
        axis.set_yscale("log")
    if chart.x_scale == "log":
        places = sorted({x for s in chart.series for x in s.x})
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        if len(places) < 9 and not chart.points:
            axis.set_xticks(places)
        elif places[-1] < 1e3 * places[0]:
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        else:  # over many decades there is room for their powers alone
            axis.xaxis.set_major_locator(LogLocator())
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _draw_series(axis: Axes, chart: Chart, series: Series) -> None:
    colour, style = LOOKS[series.method].light, _line_style(series.method)
    x, y = np.asarray(series.x, float), np.asarray(series.y, float)
    if chart.points:
        axis.plot(x, y, "o", color=colour, markersize=6)
        for tag, a, b in zip(series.tags, x, y, strict=False):
            axis.annotate(tag, (a, b), xytext=(6, 4), textcoords="offset points", fontsize=8, color=colour)
        return
    if series.marks:
        axis.plot(x, y, "o", color=colour, markersize=3.5, alpha=0.8)
        return
    if not series.shade:
        marker = "o" if len(x) < 12 else None
        axis.plot(x, y, linestyle=style, color=colour, linewidth=1.7, marker=marker, markersize=3.5)
    if series.error is not None:
        error = np.asarray(series.error, float)
        axis.fill_between(x, y - error, y + error, color=colour, alpha=0.15, linewidth=0)


def _line_style(method: str) -> str | tuple:
    dash = LOOKS[method].dash
    return (0, tuple(float(part) / 1.7 for part in dash.split())) if dash else "-"


def _legend(charts: Sequence[Chart]) -> list[Line2D]:
    entries: dict[str, Line2D] = {}
    for chart in charts:
        for series in chart.series:
            label = series.label or LOOKS[series.method].label
            look = (
                {"marker": "o", "linestyle": ""}
                if chart.points or series.marks
                else {"linestyle": _line_style(series.method)}
            )
            entries.setdefault(label, Line2D([], [], color=LOOKS[series.method].light, label=label, **look))
        if chart.zero:
            entries.setdefault(chart.zero, Line2D([], [], color=INK, linewidth=0.8, label=chart.zero))
        if chart.frontier:
            entries.setdefault("frontier", Line2D([], [], color=INK, linewidth=1.0, alpha=0.5, label="the frontier"))
    return list(entries.values())
