"""Steps to come, from a table: their times and inputs, refused with line and column."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pfbr.cli import cells
from pfbr.cli.lines import Columns
from pfbr.errors import FileError, InputError
from pfbr.inference.tables import as_the_model_has_them
from pfbr.models.base import Model


class StepsAhead(NamedTuple):
    """One entry for each step: times and inputs, where the columns name them."""

    length: int
    times: list[cells.Time] | None
    inputs: Any


def read_ahead(path: Path, model: Model, columns: Columns) -> StepsAhead:
    """A .csv with a header that has the columns of times and inputs; others are left alone."""
    wanted = [*([columns.time] if columns.time is not None else []), *columns.inputs]
    if not wanted:
        raise InputError("--ahead is a table of times and inputs to come: name its columns by --time and --inputs.")
    if path.suffix != ".csv":
        raise InputError(f"--ahead comes as .csv with a header; got {path.name!r}.")
    times: list[cells.Time] = []
    inputs: list[list[float]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            reader = csv.reader(file)
            names = [cell.strip() for cell in next(reader, [])]
            Columns(columns.time, columns.inputs, ()).split([*names, ""], f"{str(path)!r}, line 1")
            for row in reader:
                if not any(cell.strip() for cell in row):
                    continue
                where = f"{str(path)!r}, line {reader.line_num}"
                if len(row) != len(names):
                    raise InputError(f"{where} has {len(row)} columns, the header has {len(names)}. Cut short?")
                told = {name: (row[i].strip(), f"{where}, column {i + 1}") for i, name in enumerate(names)}
                inputs.append([cells.number(*told[name]) for name in columns.inputs])
                if columns.time is not None:
                    times.append(cells.time(*told[columns.time]))
    except FileNotFoundError:
        raise FileError(f"there is no file {str(path)!r} with steps to come. Check the path.") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot read {str(path)!r}: {error.strerror}.") from None
    if not inputs:
        raise InputError(f"{str(path)!r} holds no steps to come.")
    given = as_the_model_has_them(np.asarray(inputs), columns.inputs, model) if columns.inputs else None
    return StepsAhead(len(inputs), times or None, given)
