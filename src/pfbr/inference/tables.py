"""The rows of a table as streams: in order of time within each, with elapsed times, in the shapes of the model."""

import dataclasses
from typing import Any

import jax
import numpy as np

from pfbr.errors import InputError
from pfbr.inference.clock import Clock
from pfbr.io.frames import Table, is_frame
from pfbr.models.base import Model
from pfbr.models.conditions import conditions_of, example_of, observation_shape

FIRST = "first"  # as `start`: the prior is the state at the first time of each stream


@dataclasses.dataclass(frozen=True)
class Ordered:
    """Rows stream after stream, in order of time within each; `order` says which row of the table each one is."""

    order: np.ndarray
    stream: np.ndarray  # the number of each row's stream, in order of their first appearance
    ids: list[Any]
    observations: np.ndarray
    inputs: Any = None
    times: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        return np.bincount(self.stream, minlength=len(self.ids))


def ordered(model: Model, table: Table) -> Ordered:
    """Rows with one time keep the order that they have in the table."""
    ids = [None] if table.streams is None else list(dict.fromkeys(table.streams))
    number = {stream: i for i, stream in enumerate(ids)}
    stream = np.array([number[s] for s in table.streams] if table.streams else [0] * len(table), dtype=np.int64)
    keys = (stream,) if table.times is None else (table.times, stream)
    order = np.lexsort(keys)  # the last one counts most; equal ones stay in order
    inputs = None if table.inputs is None else as_the_model_has_them(table.inputs[order], table.input_names, model)
    times = None if table.times is None else table.times[order]
    return Ordered(order, stream[order], ids, _fit(table.observations[order], model), inputs, times)


def check_names(observations: Any, times: Any, **columns: Any) -> None:
    """Names go with a frame, arrays with arrays."""
    framed = is_frame(observations)
    if framed and times is not None:
        raise InputError("`times` go with arrays; of a frame name the column, `time=`.")
    for name, given in columns.items() if not framed else ():
        if given is not None:
            hint = "pass the times themselves, `times=`" if name == "time" else "pass a frame (pandas, polars)"
            raise InputError(f"`{name}` names a column of a frame, and the observations are an array: {hint}.")


def elapsed(rows: Ordered, table: Table, start: Any, time_unit: str | None) -> np.ndarray | None:
    """dt before each row, in float64; None for a table without times."""
    if rows.times is None:
        return None
    begins = np.append(True, rows.stream[1:] != rows.stream[:-1])
    if start == FIRST:
        zero = rows.times[np.flatnonzero(begins)][rows.stream]
        since = _between(rows.times, zero, time_unit)
    else:
        _check_dates(rows.times, start, table.time_name)
        clock = Clock(start, time_unit)
        since = clock.elapsed(_plain(rows.times[0])) + _between(rows.times, rows.times[0], time_unit)
        if (since < 0).any():
            row = int(np.argmax(since < 0))
            raise InputError(
                f"column {table.time_name!r}, {table.where(int(rows.order[row]))}: {rows.times[row]} lies before the "
                f"start, {start}. Set `start` to the time of the prior, or to {FIRST!r}."
            )
    before = np.where(begins, 0.0, np.append(0.0, since[:-1]))
    return since - before


def stacked(model: Model, table: Table, start: Any, time_unit: str | None) -> tuple[np.ndarray, np.ndarray | None, Any]:
    """Observations (S, T, …), times since the start (S, T) and inputs of streams that are equally long."""
    rows = ordered(model, table)
    lengths = rows.lengths
    if len(set(lengths.tolist())) > 1:
        short, long = int(lengths.argmin()), int(lengths.argmax())
        raise InputError(
            f"streams must be equally long to be compared; {rows.ids[short]!r} has {lengths[short]} rows and "
            f"{rows.ids[long]!r} has {lengths[long]}. Cut them, or compare them one by one."
        )
    lead = (len(rows.ids), int(lengths[0]))
    dt = elapsed(rows, table, start, time_unit)
    observations = rows.observations.reshape(*lead, *rows.observations.shape[1:])
    inputs = jax.tree.map(lambda leaf: leaf.reshape(*lead, *leaf.shape[1:]), rows.inputs)
    return observations, None if dt is None else np.cumsum(dt.reshape(lead), axis=1), inputs


def single_start(rows: Ordered, table: Table, start: Any) -> Any:
    """The time of the prior for a table of one stream."""
    if rows.times is None:
        return 0.0 if start == FIRST else start
    if start == FIRST:
        return _plain(rows.times[0])
    _check_dates(rows.times, start, table.time_name)
    return start


def as_the_model_has_them(inputs: np.ndarray, names: tuple[str, ...], model: Model) -> Any:
    """Columns as a vector, unless the model says that its inputs are one number, or numbers by these names."""
    example = example_of(model)
    expected = None if example is None else conditions_of(example).inputs
    if isinstance(expected, dict) and set(expected) == set(names):
        return {name: inputs[:, i].reshape(-1, *expected[name].shape) for i, name in enumerate(names)}
    if getattr(expected, "shape", None) == () and inputs.shape[1] == 1:
        return inputs[:, 0]
    return inputs


def _fit(values: np.ndarray, model: Model) -> np.ndarray:
    """A single column is one number where the model sees one; shapes are checked where rows are read."""
    shape = observation_shape(model)
    return values[:, 0] if values.shape[1] == 1 and shape in ((), None) else values


def _between(times: np.ndarray, zero: Any, time_unit: str | None) -> np.ndarray:
    if times.dtype.kind != "M":
        return times - zero
    clock = Clock(_plain(times[0]), time_unit)  # it says what is wrong with the unit
    unit = clock.elapsed(_plain(times[0] + np.timedelta64(1, "s")))
    return (times - zero) / np.timedelta64(1, "us") * 1e-6 * unit


def _plain(time: Any) -> Any:
    return time if isinstance(time, np.datetime64) else float(time)


def _check_dates(times: np.ndarray, start: Any, name: str | None) -> None:
    if times.dtype.kind == "M" and isinstance(start, int | float):
        raise InputError(
            f"the times in column {name!r} are dates: give `start`, the date of the prior, or start={FIRST!r}; and "
            "`time_unit`."
        )
