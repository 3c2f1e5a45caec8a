"""Posteriors of a table's rows into a file: a row of summaries for each, or all particles by name."""

from pathlib import Path
from typing import Any

import numpy as np

from pfbr.cli.posteriors import arrays_of
from pfbr.inference.frame_trace import FrameTrace, StreamsTrace
from pfbr.io.frames import Table, write_columns
from pfbr.io.records import write_npz


def write(path: Path, table: Table, trace: FrameTrace) -> None:
    """By the ending of the path; rows as the table has them."""
    if path.suffix == ".npz":
        beside: dict[str, Any] = {} if table.streams is None else {"stream": np.asarray(table.streams)}
        write_npz(path, {**arrays_of(trace), **beside})
        return
    kept: dict[str, Any] = {}
    if table.by_name is not None:
        kept[table.by_name] = table.streams
    if table.time_name is not None and table.times is not None:
        kept[table.time_name] = _in_full(table.times) if path.suffix == ".csv" else table.times
    write_columns(path, {**kept, **trace.columns()})


def in_words(trace: FrameTrace) -> str:
    """How a table went, in a line."""
    rows = f"{len(trace)} rows"
    if isinstance(trace, StreamsTrace):
        rows += f" of {len(trace.streams)} streams"
    if trace.info.flagged is None:
        return f"{rows}."
    return f"{rows}, {int(np.sum(np.asarray(trace.info.flagged) > 0))} flagged."


def _in_full(times: np.ndarray) -> list[Any]:
    """Dates in ISO format, as they are read."""
    return np.datetime_as_string(times).tolist() if times.dtype.kind == "M" else times.tolist()
