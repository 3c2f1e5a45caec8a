"""Observations from a file or a line of text: what is wrong with them is said with the number of the line."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.errors import FileError, InputError
from pfbr.models import Model, observation_shape

FORMATS = ".npy (T, k) or (S, T, k), .csv (one row an observation), .jsonl (one JSON list a line)"


def read(path: Path, model: Model) -> np.ndarray:
    """One stream (T, …) or, from .npy, many (S, T, …): finite numbers, of the shape that the model expects."""
    readers = {".npy": _read_npy, ".csv": _read_csv, ".jsonl": _read_jsonl}
    if path.suffix not in readers:
        raise InputError(f"observations come as {FORMATS}; got {path.name!r}.")
    if not path.is_file():
        raise FileError(f"there is no file {str(path)!r} with observations. Check the path.")
    shape = observation_shape(model)
    values = readers[path.suffix](path, shape)
    if values.size == 0:
        raise InputError(f"{str(path)!r} holds no observations.")
    return _fit_shape(values, shape, str(path), model)


def parse_line(text: str, shape: tuple[int, ...] | None, where: str) -> np.ndarray:
    """One observation from one line of JSON: a number, a list, or an object with the key "observation"."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON ({error.msg} at column {error.colno}): {_shorten(text)}") from None
    if isinstance(value, dict):
        if "observation" not in value:
            raise InputError(
                f'{where} is an object without the key "observation"; it has {", ".join(value) or "none"}.'
            )
        value = value["observation"]
    if not _only_numbers(value):
        raise InputError(f"{where} must be a number or a list of numbers; got {_shorten(text)}")
    try:
        observation = np.asarray(value, dtype=float)
    except ValueError:
        raise InputError(f"{where} is ragged: its inner lists have different lengths.") from None
    except OverflowError:
        raise InputError(f"{where} holds a number too large for a float.") from None
    _check_finite(observation, where)
    if shape == (1,) and observation.ndim == 0:
        observation = observation[None]
    if shape is not None and observation.shape != shape:
        raise InputError(f"{where} must have shape {shape}; got {observation.shape}.")
    return observation


def _read_npy(path: Path, shape: tuple[int, ...] | None) -> np.ndarray:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise FileError(f"{str(path)!r} cannot be read as .npy: damaged or cut short ({error}).") from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        kind = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"{str(path)!r} must hold an array of numbers; it holds {kind}.")
    values = values.astype(float)
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise InputError(f"{str(path)!r} holds {values[where]} at index {where}. Remove or impute such values first.")
    return values


def _read_csv(path: Path, shape: tuple[int, ...] | None) -> np.ndarray:
    rows: list[list[float]] = []
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.reader(file)
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            where = f"{str(path)!r}, line {reader.line_num}"
            if not rows and not any(map(_is_number, cells)):
                continue  # a header
            for column, cell in enumerate(cells, start=1):
                if not _is_number(cell):
                    raise InputError(f"{where}, column {column}: {cell!r} is not a number.")
            if rows and len(cells) != len(rows[0]):
                raise InputError(f"{where} has {len(cells)} columns, the rows above have {len(rows[0])}. Cut short?")
            rows.append([float(cell) for cell in cells])
            _check_finite(np.asarray(rows[-1]), where)
    return np.asarray(rows, dtype=float)


def _read_jsonl(path: Path, shape: tuple[int, ...] | None) -> np.ndarray:
    rows: list[np.ndarray] = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{str(path)!r}, line {number}"
            rows.append(parse_line(line, shape, where))
            if rows[-1].shape != rows[0].shape:
                raise InputError(f"{where} has shape {rows[-1].shape}, the lines above {rows[0].shape}. Cut short?")
    return np.asarray(rows, dtype=float)


def _fit_shape(values: np.ndarray, shape: tuple[int, ...] | None, where: str, model: Model) -> np.ndarray:
    """Check the trailing axes; a plain list of numbers serves a model whose observation is one number."""
    if shape is None:
        return values if values.ndim > 1 else values[:, None]
    if shape == (1,) and values.ndim == 1:
        values = values[:, None]
    streams = values.ndim - len(shape)
    if streams not in (1, 2) or (shape and values.shape[-len(shape) :] != shape):
        single = ", ".join(["T", *map(str, shape)])
        raise InputError(
            f"{where!r} has shape {values.shape}; {type(model).__name__} needs ({single}), or (S, {single}) for many "
            "streams."
        )
    return values


def _check_finite(values: np.ndarray, where: str) -> None:
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)].reshape(-1)[0]
        raise InputError(f"{where} holds {bad}. Remove or impute such values first.")


def _only_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) > 0 and all(map(_only_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _shorten(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 60 else text[:57] + "..."
