"""Numbers, gaps and times as they are written in text; what is none of them is refused, with its place."""

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pfbr.errors import InputError

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")  # no 1_000, no hex, no other digits
GAPS = ("", "na", "nan", "null")
Time = float | datetime.datetime


def is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def is_gap(cell: str) -> bool:
    """Whether the cell says that nothing was observed."""
    return cell.lower() in GAPS


def number(cell: str, where: str) -> float:
    """A finite number."""
    if not is_number(cell):
        raise InputError(f"{where}: {shortened(cell)!r} is not a number.")
    value = float(cell)
    if not math.isfinite(value):
        raise InputError(f"{where}: {shortened(cell)!r} is too large for a number.")
    return value


def number_or_gap(cell: str, where: str) -> float:
    """A finite number; NaN where nothing was observed."""
    return math.nan if is_gap(cell) else number(cell, where)


def time(value: Any, where: str) -> Time:
    """A number, or a date in ISO format such as 2024-05-01T12:00."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    text = value.strip() if isinstance(value, str) else None
    if text and is_number(text):
        return number(text, where)
    try:
        return datetime.datetime.fromisoformat(text or "")
    except ValueError:
        raise InputError(
            f"{where}: {shortened(str(value))!r} is no time: a number, or a date such as 2024-05-01T12:00."
        ) from None


def moments(times: Sequence[Time], where: Callable[[int], str]) -> np.ndarray:
    """Times of one kind, numbers or dates (UTC where they have a zone), as an array."""
    dated = isinstance(times[0], datetime.datetime)
    for row, one in enumerate(times):
        if isinstance(one, datetime.datetime) != dated:
            raise InputError(f"{where(row)} has a {'number' if dated else 'date'} for a time, unlike the rows above.")
    if not dated:
        return np.asarray(times, dtype=float)
    plain = [t.astimezone(datetime.UTC).replace(tzinfo=None) if t.tzinfo else t for t in times]  # type: ignore[union-attr]
    return np.array(plain, dtype="datetime64[us]")


def shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 60 else text[:57] + "..."
