"""Tables with named columns: frames of pandas, polars or pyarrow in and out, and files of them.

Frames are read through narwhals, whatever library they come from; none of these is imported before a frame is there.
"""

import csv
import dataclasses
import difflib
import importlib
import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.errors import FileError, InputError
from pfbr.io.files import atomic, write_text

LIBRARIES = ("pandas", "polars", "pyarrow", "narwhals", "modin", "cudf")


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows as arrays: observations (N, k), NaN where nothing was observed; inputs (N, m); times, numbers or
    datetime64; the stream of each row. None is what did not come."""

    observations: np.ndarray
    inputs: np.ndarray | None = None
    times: np.ndarray | None = None
    streams: list[Any] | None = None
    input_names: tuple[str, ...] = ()
    time_name: str | None = None
    by_name: str | None = None
    source: Any = None  # the frame that came: what goes back is of its kind, with its index
    where: Callable[[int], str] = "row {}".format  # how a row is called in an error

    def __len__(self) -> int:
        return len(self.observations)


def is_frame(value: Any) -> bool:
    """Whether this is a frame of a library that is known, without importing any."""
    kind = type(value)
    return kind.__module__.split(".")[0] in LIBRARIES and kind.__name__ in ("DataFrame", "LazyFrame", "Table")


def read_frame(
    frame: Any,
    *,
    by: str | None = None,
    time: str | None = None,
    observation: str | Sequence[str] | None = None,
    inputs: str | Sequence[str] | None = None,
) -> Table:
    """The named columns of a frame; without `observation`, all that are not named otherwise. What is missing (null,
    None, NA, NaN) is a gap in the observation, and refused elsewhere."""
    nw = narwhals()
    try:
        held = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError("a lazy frame has no rows yet: call `.collect()` on it first.") from None
    where = _row_names(frame)
    of_inputs, of_observation = _names(inputs, "inputs"), _names(observation, "observation")
    single = [name for name in (by, time) if name is not None]
    for name in single:
        if not isinstance(name, str):
            raise InputError(f"`by` and `time` name one column each; got {name!r}.")
    named = [*single, *of_inputs, *of_observation]
    _check_names(named, list(held.columns))
    chosen = of_observation or tuple(name for name in held.columns if name not in named)
    if not chosen:
        raise InputError("no column is left for the observation: name it, `observation=[…]`.")
    if len(held) == 0:
        raise InputError("the frame has no rows: there is nothing to learn from.")
    seen = [_numbers(held[name], name, where, gaps=True) for name in chosen]
    given = [_numbers(held[name], name, where, gaps=False) for name in of_inputs]
    return Table(
        np.stack(seen, axis=1),
        np.stack(given, axis=1) if given else None,
        None if time is None else _times(held[time], time, where),
        None if by is None else _streams(held[by], by, where),
        of_inputs,
        time,
        by,
        frame,
        where,
    )


def frame_like(source: Any, kept: Sequence[str], columns: Mapping[str, np.ndarray]) -> Any:
    """A frame of the kind and with the index of `source`: its columns `kept`, then new ones."""
    nw = narwhals()
    held = nw.from_native(source, eager_only=True)
    parts = {name: held[name].to_native() for name in kept} | dict(columns)
    native = nw.get_native_namespace(held)
    if held.implementation.is_pandas_like():
        return native.DataFrame(parts, index=held.to_native().index)
    if held.implementation.is_pyarrow():
        return native.table(parts)
    return native.DataFrame(parts)


def read_parquet(path: Path) -> Any:
    """A pyarrow table."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(missing_extra("parquet files need pyarrow")) from None
    try:
        return parquet.read_table(path)
    except Exception as error:  # pyarrow has errors of its own for what is damaged
        raise FileError(f"{str(path)!r} cannot be read as parquet: {str(error).splitlines()[0]}") from None


def write_columns(path: str | os.PathLike, columns: Mapping[str, Any]) -> None:
    """Named columns as .csv or .parquet, by the ending of the path; whole or not at all."""
    if Path(path).suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(_cells(values) for values in columns.values()), strict=True))
        write_text(path, text.getvalue())
        return
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(missing_extra("parquet files need pyarrow")) from None
    with atomic(path) as file:
        parquet.write_table(arrow.table(dict(columns)), file)


def narwhals() -> Any:
    try:
        return importlib.import_module("narwhals")
    except ImportError:
        raise InputError(missing_extra("frames are read through narwhals")) from None


def missing_extra(what: str) -> str:
    return f'{what}: install it with `pip install "pfbr[frames]"`.'


def _cells(values: Any) -> list[Any]:
    """NaN is an empty cell, a float is written so that it is read back as it was."""
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    return ["" if value is None or value != value else value for value in plain]


def _names(given: str | Sequence[str] | None, what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given or ())
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"`{what}` of a frame names its columns, e.g. {what}=['a', 'b']; got {given!r}.")
    return names


def _check_names(named: list[str], columns: list[str]) -> None:
    for name in named:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, n=1, cutoff=0.5)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"the frame has no column {name!r}.{guess} It has {', '.join(map(str, columns))}.")
        if named.count(name) > 1:
            raise InputError(f"the column {name!r} is named twice: it holds one thing.")


def _row_names(frame: Any) -> Callable[[int], str]:
    """Rows are counted from 0; pandas' own label stands beside, where it says more."""
    index: Any = getattr(frame, "index", None)
    plain = index is None or callable(index) or type(index).__name__ == "RangeIndex"
    return lambda row: f"row {row}" if plain else f"row {row} (index {index[row]!r})"


def _numbers(series: Any, name: str, where: Callable[[int], str], *, gaps: bool) -> np.ndarray:
    """A column as float64."""
    missing = series.is_null().to_numpy().astype(bool)
    if series.dtype.is_numeric() or str(series.dtype) == "Boolean":
        values = series.to_numpy()
        array = np.where(missing, np.nan, np.where(missing, 0, values)).astype(float) if missing.any() else values
        array = np.asarray(array, dtype=float)
    else:
        array = np.array([_number(v, gone) for v, gone in zip(series.to_list(), missing, strict=True)], dtype=float)
        bad = np.isinf(array) | (np.isnan(array) & ~missing & ~_are_nan(series.to_list()))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"column {name!r}, {where(row)}: {_shown(series[row])} is not a number.")
    if np.isinf(array).any():
        row = int(np.argmax(np.isinf(array)))
        raise InputError(f"column {name!r}, {where(row)}: {array[row]} is not finite. What is missing is null or NaN.")
    if not gaps and np.isnan(array).any():
        row = int(np.argmax(np.isnan(array)))
        raise InputError(
            f"column {name!r}, {where(row)} is missing, and inputs have no gaps: fill it, or leave the row out."
        )
    return array


def _number(value: Any, missing: bool) -> float:
    """A cell of a column of mixed things; infinite where it is no number."""
    if missing or value is None:
        return float("nan")
    if isinstance(value, str | bytes):
        return float("inf")
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("inf")


def _are_nan(values: list[Any]) -> np.ndarray:
    return np.array([isinstance(v, float) and v != v for v in values], dtype=bool)


def _times(series: Any, name: str, where: Callable[[int], str]) -> np.ndarray:
    """Numbers as float64, dates as datetime64 in UTC."""
    nw = narwhals()
    missing = series.is_null().to_numpy().astype(bool)
    if missing.any():
        raise InputError(f"column {name!r}, {where(int(np.argmax(missing)))}: the time is missing.")
    if series.dtype.is_numeric():
        return _numbers(series, name, where, gaps=False)
    if isinstance(series.dtype, nw.Datetime):
        if series.dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return series.to_numpy().astype("datetime64[us]")
    values = series.to_list()
    found = np.empty(len(values), "datetime64[us]")
    for row, value in enumerate(values):
        try:
            if isinstance(value, str) or hasattr(value, "year"):
                found[row] = np.datetime64(value, "us")
                continue
        except ValueError:
            pass
        raise InputError(
            f"column {name!r}, {where(row)}: {_shown(value)} is no time: a number, or a date such as 2024-05-01T12:00."
        )
    return found


def _streams(series: Any, name: str, where: Callable[[int], str]) -> list[Any]:
    missing = series.is_null().to_numpy().astype(bool)
    if missing.any():
        raise InputError(f"column {name!r}, {where(int(np.argmax(missing)))}: the row belongs to no stream.")
    return series.to_list()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
