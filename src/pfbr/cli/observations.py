"""A stream from a file: observations, and the times and inputs that came with them; refused with line and column."""

import csv
import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from pfbr.cli import cells
from pfbr.cli.lines import Columns, Line, parse_line
from pfbr.cli.words import FORMATS
from pfbr.errors import FileError, InputError
from pfbr.inference.tables import as_the_model_has_them
from pfbr.io.arrays import read_npy
from pfbr.io.frames import Table, read_frame, read_parquet
from pfbr.models.base import Model
from pfbr.models.conditions import observation_shape

TABLES = (".csv", ".parquet")


class Streams(NamedTuple):
    """Observations (T, …) or, from .npy, of many streams (S, T, …), NaN where nothing was observed; times (T,) and
    inputs (T, …) where they came with them."""

    observations: np.ndarray
    times: Any = None  # a list, or an array (S, T) of elapsed ones
    inputs: Any = None
    by: list[str] | None = None  # the stream of each row, of a .csv that names the column
    lines: list[int] | None = None  # where each row stands in a .csv


def read(path: Path, model: Model, columns: Columns = Columns()) -> Streams:
    """What a file holds, in the shapes that the model expects."""
    readers = {".npy": _read_npy, ".csv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise InputError(f"observations come as {FORMATS}; got {path.name!r}.")
    if not path.is_file():
        raise FileError(f"there is no file {str(path)!r} with observations. Check the path.")
    shape = observation_shape(model)
    try:
        found = readers[path.suffix](path, shape, columns)
    except PermissionError as error:
        raise FileError(f"cannot read {str(path)!r}: {error.strerror}.") from None
    if found.observations.size == 0:
        raise InputError(f"{str(path)!r} holds no observations.")
    values = _fit_shape(found.observations, shape, str(path), model)
    inputs = found.inputs
    if path.suffix in TABLES and inputs is not None:
        inputs = as_the_model_has_them(inputs, columns.inputs, model)
    return Streams(values, found.times, inputs)


def read_table(path: Path, columns: Columns) -> Table:
    """The columns of a .csv or .parquet file, as they stand there."""
    if path.suffix not in TABLES:
        raise InputError(f"a table with names is a {' or '.join(TABLES)} file; got {path.name!r}.")
    if not path.is_file():
        raise FileError(f"there is no file {str(path)!r} with observations. Check the path.")
    named: dict[str, Any] = {"inputs": columns.inputs, "time": columns.time, "by": columns.by}
    if path.suffix == ".parquet":
        try:
            table = read_frame(read_parquet(path), observation=columns.observation, **named)
        except InputError as error:
            raise InputError(f"{str(path)!r}: {error}") from None
        return dataclasses.replace(table, source=None, where=lambda row: f"{str(path)!r}, row {row}")
    found = _read_csv(path, None, columns)
    if found.observations.size == 0:
        raise InputError(f"{str(path)!r} holds no observations.")
    lines = found.lines or []
    times = None if found.times is None else cells.moments(found.times, lambda row: f"{str(path)!r}, line {lines[row]}")
    return Table(
        found.observations,
        found.inputs,
        times,
        found.by,
        columns.inputs,
        columns.time,
        columns.by,
        where=lambda row: f"{str(path)!r}, line {lines[row]}",
    )


def _read_parquet(path: Path, shape: tuple[int, ...] | None, columns: Columns) -> Streams:
    table = read_table(path, columns)
    return Streams(table.observations, None if table.times is None else table.times.tolist(), table.inputs)


def _read_npy(path: Path, shape: tuple[int, ...] | None, columns: Columns) -> Streams:
    if columns.named:
        raise InputError(f"the columns of {str(path)!r} have no names: give a .csv with a header, or JSON lines.")
    values = read_npy(path).astype(float)
    if np.isinf(values).any():
        where = tuple(int(i) for i in np.argwhere(np.isinf(values))[0])
        raise InputError(f"{str(path)!r} holds {values[where]} at index {where}. NaN is what was not observed.")
    return Streams(values)


def _read_csv(path: Path, shape: tuple[int, ...] | None, columns: Columns) -> Streams:
    rows: list[list[float]] = []
    inputs: list[list[float]] = []
    times: list[cells.Time] = []
    by: list[str] = []
    lines: list[int] = []
    names: list[str] | None = None
    width = 0
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file)
        try:
            for row in reader:
                if not row or (len(row) == 1 and row[0] and not row[0].strip()):
                    continue  # a blank line; a gap in a file of one column is written ""
                given = [cell.strip() for cell in row]
                where = f"{str(path)!r}, line {reader.line_num}"
                if names is None:
                    names, width = [str(i) for i in range(len(given))], len(given)
                    if columns.named or not any(cells.is_number(cell) or cells.is_gap(cell) for cell in given):
                        names = given
                        time, of_inputs, of_observation = _places(columns, names, where)
                        continue  # a header
                    time, of_inputs, of_observation = _places(columns, names, where)
                if len(given) != width:
                    raise InputError(f"{where} has {len(given)} columns, the rows above have {width}. Cut short?")

                def place(column: int, where: str = where) -> str:
                    return f"{where}, column {column + 1}"

                rows.append([cells.number_or_gap(given[c], place(c)) for c in of_observation])
                inputs.append([cells.number(given[c], place(c)) for c in of_inputs])
                lines.append(reader.line_num)
                if time is not None:
                    times.append(cells.time(given[time], place(time)))
                if columns.by is not None:
                    which = names.index(columns.by)
                    if cells.is_gap(given[which]):
                        raise InputError(f"{place(which)}: the row belongs to no stream.")
                    by.append(given[which])
        except csv.Error as error:
            raise InputError(f"{str(path)!r}, line {reader.line_num} cannot be read ({error}).") from None
    given_inputs = np.asarray(inputs) if columns.inputs else None
    return Streams(np.asarray(rows, dtype=float), times or None, given_inputs, by or None, lines)


def _places(columns: Columns, names: list[str], where: str) -> tuple[int | None, list[int], list[int]]:
    if not columns.named:
        return None, [], list(range(len(names)))
    time, inputs, observation = columns.split(names, where)
    return (
        None if time is None else names.index(time),
        [names.index(name) for name in inputs],
        [names.index(name) for name in observation],
    )


def _read_jsonl(path: Path, shape: tuple[int, ...] | None, columns: Columns) -> Streams:
    lines: list[Line] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for count, text in enumerate(file, start=1):
            if not text.strip():
                continue
            where = f"{str(path)!r}, line {count}"
            line = parse_line(text, shape, where, columns)
            if line.retract:
                raise InputError(f"{where} takes an observation back, which only a live stream (`-`) can do.")
            if line.asks or line.id is not None:
                what = "asks for a forecast" if line.asks else f"belongs to the stream {line.id!r}"
                raise InputError(f"{where} {what}, which only a live stream (`-`) can answer.")
            if shape is None and line.observation is not None:
                shape = line.observation.shape  # a model that cannot tell takes the first one's
            for name in ("time", "inputs"):
                came = getattr(line, name) is not None
                if lines and came != (getattr(lines[0], name) is not None):
                    raise InputError(f'{where} {"has" if came else "has no"} "{name}", unlike the lines above.')
            lines.append(line)
    if not lines or shape is None:
        return Streams(np.zeros(0))
    values = [np.full(shape, np.nan) if line.observation is None else line.observation for line in lines]
    times = [line.time for line in lines if line.time is not None]
    return Streams(np.stack(values), times or None, _stacked([line.inputs for line in lines], str(path)))


def _stacked(inputs: list[Any], where: str) -> Any:
    """Trees of arrays, one for each observation, as one tree."""
    if inputs[0] is None:
        return None
    try:
        return jax.tree.map(lambda *leaves: np.stack(leaves), *inputs)
    except ValueError:
        raise InputError(f"{where!r} holds inputs of different shapes. Every line must have the same ones.") from None


def _fit_shape(values: np.ndarray, shape: tuple[int, ...] | None, where: str, model: Model) -> np.ndarray:
    """Check the trailing axes; a plain list of numbers serves a model whose observation is one number."""
    if shape is None:
        return values if values.ndim > 1 else values[:, None]
    if shape == (1,) and values.ndim == 1:
        values = values[:, None]
    if shape == () and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    streams = values.ndim - len(shape)
    if streams not in (1, 2) or (shape and values.shape[-len(shape) :] != shape):
        single = ", ".join(["T", *map(str, shape)])
        raise InputError(
            f"{where!r} has shape {values.shape}; {type(model).__name__} needs ({single}), or (S, {single}) for many "
            "streams."
        )
    return values
