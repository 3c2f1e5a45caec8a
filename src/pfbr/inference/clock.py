"""Elapsed times: differences of what users call time, taken where nothing is lost.

Epoch seconds and dates do not fit into float32; their differences do. So they are taken on the host, in float64 or
between datetimes, and only `dt` is handed on.
"""

import datetime
from typing import Any

import numpy as np

from pfbr.checks import shortened
from pfbr.errors import InputError

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "D": 86400.0, "W": 604800.0}
YEARS = 290_000  # from 1970 that microseconds can count


class Clock:
    """Turns times into elapsed ones. `start` is the time of the prior; datetimes are counted in `time_unit`."""

    def __init__(self, start: Any = 0.0, time_unit: str | None = None):
        if time_unit is not None and not (isinstance(time_unit, str) and time_unit in UNITS):
            raise InputError(f"`time_unit` must be one of {', '.join(UNITS)}; got {shortened(time_unit)}.")
        self.time_unit = time_unit
        self.start = start
        self.zero = self._moment(start)
        self.now = 0.0  # since the start, in the units of dt

    def elapsed(self, time: Any) -> float:
        """From the start to `time`, in the units of dt; float64."""
        moment = self._moment(time)
        if isinstance(moment, np.datetime64) != isinstance(self.zero, np.datetime64):
            if isinstance(moment, np.datetime64):
                raise InputError(
                    f"`time` is a date ({time}) and the session's `start` is {self.start!r}: give the session a date "
                    "too, `Session(model, start=…, time_unit=…)`."
                )
            raise InputError(f"the session's `start` is a date ({self.start}); `time` is {time!r}. Give a date.")
        if isinstance(moment, np.datetime64):
            seconds = (moment - self.zero) / np.timedelta64(1, "us") * 1e-6
            return float(seconds / UNITS[self.time_unit or "s"])
        return float(moment - self.zero)

    def moments(self, since: np.ndarray) -> np.ndarray:
        """The inverse of `elapsed`, for many: numbers, or dates where `start` is one."""
        if isinstance(self.zero, np.datetime64):
            micro = np.round(np.asarray(since) * UNITS[self.time_unit or "s"] * 1e6).astype("timedelta64[us]")
            return self.zero + micro
        return self.zero + np.asarray(since, dtype=np.float64)

    def _moment(self, time: Any) -> Any:
        if isinstance(time, datetime.datetime) and time.tzinfo is not None:
            time = time.astimezone(datetime.UTC).replace(tzinfo=None)
        if isinstance(time, datetime.date | np.datetime64 | str):
            if self.time_unit is None:
                raise InputError(
                    f"`time` is a date ({time}): say in which unit your model counts time, "
                    f"`time_unit=` one of {', '.join(UNITS)}."
                )
            try:
                moment = np.datetime64(time, "us")  # type: ignore[call-overload]
                year = np.datetime64(time, "Y")  # type: ignore[call-overload]
                if abs(int(year.astype(int))) > YEARS and not np.isnat(year):
                    raise ValueError("so many years do not fit")  # NumPy would wrap them around
            except ValueError as error:
                raise InputError(f"`time` is {time!r}, which is no date ({error}).") from None
            if np.isnat(moment):
                raise InputError("`time` is not a time (NaT).")
            return moment
        try:
            if isinstance(time, bool | np.bool_ | bytes):
                raise TypeError
            value = float(time)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"`time` must be a number or a date; got {type(time).__name__}.") from None
        if not np.isfinite(value):
            raise InputError(f"`time` must be finite; got {value}.")
        return value


def as_times(times: Any) -> np.ndarray:
    """Times of a stream, or of many, as an array of what they are."""
    try:
        return np.asarray(times)
    except ValueError:
        raise InputError("`times` must have one time for each observation; its parts have different lengths.") from None


def elapsed_times(times: Any, length: int, clock: Clock) -> np.ndarray:
    """dt before each of `length` observations at `times`, the first since the clock's now; they must not go back."""
    values = as_times(times)
    if values.shape != (length,):
        raise InputError(f"`times` must have one entry for each of the {length} observations; got {values.shape}.")
    dt = np.diff(moments_since(clock, values), prepend=clock.now)
    if np.any(dt < 0):
        at = int(np.argmax(dt < 0))
        before = clock.moments(np.array([clock.now]))[0] if at == 0 else values[at - 1]
        late = "or set `start` to the time of the prior" if clock.now == 0 else "or take late ones by `update`"
        raise InputError(
            f"`times` go back at observation {at + 1}: {values[at]} after {before}. Sort the stream by time, {late}."
        )
    return dt


def moments_since(clock: Clock, times: np.ndarray) -> np.ndarray:
    """From the clock's start to each of many times, in the units of dt; float64."""
    return np.array([clock.elapsed(_scalar(one)) for one in times], dtype=np.float64)


def _scalar(value: Any) -> Any:
    """Datetimes as they are, numbers as Python's."""
    return value if isinstance(value, np.datetime64 | datetime.date | str) else np.asarray(value).item()
