"""What a notebook shows: a table with a small picture in every line, all text escaped."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from pfbr.inference.display import svg
from pfbr.inference.display.columns import Column, clock_words, limits, time_coordinate

MOST_ROWS, MOST_STAGES = 24, 400  # lines of a table; points of a small picture
LEVELS = (0.05, 0.95)
CELL = "text-align:right;padding:.15em .6em"  # not every page that shows a table knows how tables look
HEADINGS = ("mean", "sd", "5 %", "95 %")


def counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def posterior_html(title: str, told: Sequence[str], found: Sequence[Column]) -> str:
    """A line for each number: mean, spread, interval, density."""
    return _table(title, told, ("", *HEADINGS, ""), [(one.name, *_summary(one), svg.density(one)) for one in found])


def path_html(title: str, told: Sequence[str], found: Sequence[Column], times: Any = None) -> str:
    """A line for each number of a stream: its last value, and how it went over the stages."""
    stages = len(found[0].values) if found else 0
    kept = np.unique(np.linspace(0, max(stages - 1, 0), min(stages, MOST_STAGES)).astype(int))
    x = time_coordinate(times)
    x = (np.arange(stages) if x is None else x)[kept]
    rows = []
    for one in found[: MOST_ROWS + 1]:
        last, path = _picked(one, -1), _picked(one, kept)
        rows.append((one.name, *_summary(last), svg.fan(path, x)))
    rows += [("", *[""] * len(HEADINGS), "")] * (len(found) - len(rows))
    return _table(title, told, ("last", *HEADINGS, "all stages"), rows)


def forecast_html(title: str, told: Sequence[str], found: Sequence[Column], times: np.ndarray) -> str:
    """A picture for each number, and a line for each number and time."""
    pictures = [
        f'<div style="display:inline-block;margin:0 1.2em .4em 0">{escape(one.name)} {_reach(one)}<br>'
        f"{svg.fan(one, time_coordinate(times), 280, 90)}</div>"
        for one in found[:4]
    ]
    rows = [
        (time, one.name, *_summary(_picked(one, step))) for step, time in enumerate(clock_words(times)) for one in found
    ]
    return _table(title, told, ("time", "", *HEADINGS), rows, "".join(pictures))


def _reach(column: Column) -> str:
    """Which values the picture of a path spans, in words: it has no axis."""
    low, high = column.quantile(LEVELS)
    ends = limits(low, high) or (low.min(), high.max())
    return f"({ends[0]:.3g} to {ends[1]:.3g})"


def _picked(column: Column, stage: Any) -> Column:
    return Column(column.name, column.values[stage], column.weights[stage])


def _summary(column: Column) -> tuple[str, ...]:
    """To so many digits as the spread makes sense of: three of its own."""
    values = np.array([column.mean, column.std, *column.quantile(LEVELS)], float)
    spread = values[1]
    if not (np.isfinite(values).all() and spread > 0 and np.abs(values).max() < 1e7 and spread > 1e-7):
        return tuple(f"{value:.4g}" for value in values)
    digits = max(0, 2 - math.floor(math.log10(spread)))
    return tuple(f"{np.round(value, digits) + 0.0:.{digits}f}" for value in values)


def _table(title: str, told: Sequence[str], head: Sequence[str], rows: Sequence[tuple], above: str = "") -> str:
    """Pictures stand as they are; anything else is text."""
    shown = "".join(_row(row) for row in rows[:MOST_ROWS])
    left = len(rows) - MOST_ROWS
    more = f'<tr><td colspan="{len(head)}">… and {left} more</td></tr>' if left > 0 else ""
    heading = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in head)
    return (
        f'<div class="pfbr"><p style="margin:.2em 0"><b>{escape(title)}</b> {escape(" · ".join(told))}</p>{above}'
        f"<table><thead><tr>{heading}</tr></thead><tbody>{shown}{more}</tbody></table></div>"
    )


def _row(cells: tuple) -> str:
    inner = (cell if isinstance(cell, svg.Picture) else escape(cell) for cell in cells)
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in inner) + "</tr>"
