"""What comes in one call, one row a stream: read together, refused one by one."""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.checks import as_array
from pfbr.errors import InputError
from pfbr.inference.clock import Clock
from pfbr.inference.rows import Row, RowReader
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import observation_shape


@dataclasses.dataclass
class Reports:
    """Rows without NaN, leading with the report; `at` is when they came (None: nobody said), in float64 since the
    panel's start. `refused` says why a report cannot be used."""

    streams: list[Hashable]
    rows: Row
    at: np.ndarray | None
    refused: dict[int, str]

    def __len__(self) -> int:
        return len(self.streams)

    @property
    def observed(self) -> np.ndarray:
        """Whether anything was seen."""
        return np.any(np.reshape(self.rows.observed, (len(self), -1)), axis=1)


class ReportReader:
    """Reads the reports of one model's streams."""

    def __init__(self, model: Model):
        self.model = model
        self._reader = RowReader(model)
        self._shape = observation_shape(model)
        self.takes_dt = self._reader.needs_dt or isinstance(model, StateSpaceModel)

    def read(self, observations: Any, streams: Sequence[Hashable], time: Any, inputs: Any, clock: Clock) -> Reports:
        """An error where the call as a whole cannot be read; what is wrong with single reports is told for each."""
        names = _checked_streams(streams)
        refused: dict[int, str] = {}
        values = self._values(observations, len(names))
        self._refuse(refused, np.isinf(values), "`observation` holds an infinite number; only NaN stands for a gap")
        values = np.where(np.isinf(values), np.nan, values)
        inputs, bad = _finite_inputs(inputs, len(names))
        self._refuse(refused, bad, "`inputs` hold a number that is not finite")
        at = None if time is None else self._times(time, len(names), clock, refused)
        values = self._without_gaps(values, inputs, refused)
        row = self._reader.read_stream(values, times=None, inputs=inputs, clock=clock)[0]
        self._shape = row.observations.shape[1:]
        observed = np.ones(row.observations.shape, bool) if row.observed is None else np.asarray(row.observed)
        dt = np.ones(len(names), jnp.result_type(float)) if self.takes_dt else None
        return Reports(names, Row(np.asarray(row.observations), observed, dt, row.inputs), at, refused)

    def example(self) -> Row:
        """A row such as may come, before any has."""
        one = self._reader.example()
        dt = np.ones((), jnp.result_type(float)) if self.takes_dt else None
        return Row(one.observation, np.ones(np.shape(one.observation), bool), dt, one.inputs)

    def read_inputs_ahead(self, inputs: Any, length: int) -> Any:
        """Inputs of `length` steps to come."""
        return self._reader.read_inputs_ahead(inputs, length)

    def resume(self, row: Row) -> None:
        """Expect rows like this one, which was read before."""
        self._reader.resume(row)
        self._shape = np.shape(row.observation)

    def _values(self, observations: Any, number: int) -> np.ndarray:
        if not isinstance(observations, np.ndarray | jax.Array) and any(one is None for one in observations):
            shape = self._shape
            if shape is None:
                known = next((np.shape(one) for one in observations if one is not None), None)
                if known is None:
                    raise InputError(
                        f"nothing was observed, and {type(self.model).__name__} does not tell the shape of an "
                        "observation before one has come: pass NaN in its shape."
                    )
                shape = known
            gap = np.full(shape, np.nan)
            observations = [gap if one is None else one for one in observations]
            if shape in ((), (1,)):
                observations = [np.reshape(one, shape) for one in observations]
        try:
            plain = np.asarray(observations, dtype=float)
        except (TypeError, ValueError):
            plain = as_array(observations, "observations", gaps=True)  # says what is wrong
        if plain.ndim == 0 or len(plain) != number:
            raise InputError(
                f"`observations` must have a row for each of the {number} streams; got shape {plain.shape}."
            )
        with np.errstate(over="ignore"):
            values = plain.astype(jnp.result_type(float))
        if self._shape == () and values.shape == (number, 1):
            values = values[:, 0]
        if self._shape is not None and values.ndim == 1 and self._shape == (1,):
            values = values[:, None]
        if self._shape is not None and values.shape != (number, *self._shape):
            raise InputError(
                f"`observations` must have shape {(number, *self._shape)} for {number} streams of this "
                f"{type(self.model).__name__}; got {values.shape}."
            )
        return values

    def _without_gaps(self, values: np.ndarray, inputs: Any, refused: dict[int, str]) -> np.ndarray:
        """Refuse reports that are missing in part where the model cannot leave a part out."""
        flat = np.isnan(values).reshape(len(values), -1)
        partial = np.flatnonzero(flat.any(axis=1) & ~flat.all(axis=1))
        if partial.size == 0:
            return values
        first = int(partial[0])
        try:
            given = jax.tree.map(lambda leaf: leaf[first], inputs)
            self._reader.read(values[first], inputs=given)
        except InputError as error:
            for row in partial:
                refused.setdefault(int(row), str(error))
            values = values.copy()
            values[partial] = np.nan
        return values

    def _times(self, time: Any, number: int, clock: Clock, refused: dict[int, str]) -> np.ndarray:
        single = np.ndim(time) == 0
        moments = [time] * number if single else list(time)
        if len(moments) != number:
            raise InputError(f"`time` must be one time, or one for each of the {number} streams; got {len(moments)}.")
        numbers = not single and isinstance(time, np.ndarray) and time.dtype.kind in "fiu"
        if numbers and isinstance(clock.zero, float):
            since = np.asarray(time, np.float64) - clock.zero
            self._refuse(refused, ~np.isfinite(since), "`time` must be finite")
            return np.where(np.isfinite(since), since, 0.0)
        since = np.zeros(number)
        for row, moment in enumerate(moments[:1] if single else moments):
            try:
                since[row] = clock.elapsed(moment)
            except InputError as error:
                if single:
                    raise
                refused.setdefault(row, str(error))
        return np.full(number, since[0]) if single else since

    @staticmethod
    def _refuse(refused: dict[int, str], bad: np.ndarray, why: str) -> None:
        for row in np.flatnonzero(np.reshape(bad, (len(bad), -1)).any(axis=1)):
            refused.setdefault(int(row), f"{why}. The stream stays as it was.")


def _checked_streams(streams: Any) -> list[Hashable]:
    if isinstance(streams, str | bytes) or not hasattr(streams, "__iter__"):
        raise InputError(f"`streams` must be a list of ids, one for each row; got {streams!r}.")
    names = [one.item() if isinstance(one, np.generic) else one for one in streams]
    if not names:
        raise InputError("`streams` is empty: name the stream of each row.")
    for place, name in enumerate(names):
        try:
            hash(name)
        except TypeError:
            raise InputError(f"`streams` must be hashable; number {place + 1} is a {type(name).__name__}.") from None
        if name != name:
            raise InputError(f"`streams` must be ids that equal themselves; number {place + 1} is {name!r}.")
    return names


def _finite_inputs(inputs: Any, number: int) -> tuple[Any, np.ndarray]:
    """Inputs with zeros in place of what is not finite, and which rows had such."""
    bad = np.zeros(number, bool)

    def one(leaf: Any) -> np.ndarray:
        try:
            values = np.asarray(leaf, dtype=float)
        except (TypeError, ValueError):
            return as_array(leaf, "inputs")  # says what is wrong
        if values.shape[:1] == (number,):
            finite = np.isfinite(values)
            bad[:] |= ~finite.reshape(number, -1).all(axis=1)
            values = np.where(finite, values, 0.0)
        return values

    return jax.tree.map(one, inputs, is_leaf=lambda leaf: isinstance(leaf, list)), bad


def rounds(reports: Reports) -> list[np.ndarray]:
    """Rows in which every stream reports at most once: the first reports of all, then the second ones."""
    seen: dict[Hashable, int] = {}
    turn = np.zeros(len(reports), np.int64)
    for row, name in enumerate(reports.streams):
        turn[row] = seen.get(name, 0)
        seen[name] = int(turn[row]) + 1
    return [np.flatnonzero(turn == number) for number in range(int(turn.max()) + 1)]
