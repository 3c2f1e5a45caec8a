"""What a worker of Spark does with the rows of one stream, in pandas frames; made once in each worker."""

import functools
import pickle
from collections.abc import Iterable
from typing import Any

import numpy as np

from pfbr.inference.tables import as_the_model_has_them
from pfbr.models.base import Model
from pfbr.models.conditions import observation_shape
from pfbr.scale.answers import Answers
from pfbr.scale.keyed import Keyed, KeyedSettings


class Work:
    """What a worker does with the rows of one stream; made anew in every worker, once."""

    def __init__(self, model: Model, settings: KeyedSettings, answers: Answers, names: dict[str, tuple[str, ...]]):
        self.model, self.settings, self.answers, self.names = model, settings, answers, names

    @functools.cached_property
    def keyed(self) -> Keyed:
        return Keyed(self.model, self.settings, self.answers)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "keyed"}

    def update(self, name: tuple, content: bytes | None, frames: Iterable[Any]) -> tuple[bytes | None, Any]:
        """The bytes after the rows in pandas frames, and a frame of answers. Spark keeps no order among rows: those of
        one time are put in order of their values, so that a repeated batch is the same."""
        import pandas as pd

        rows = pd.concat(list(frames), ignore_index=True)
        by, time, observation, inputs = (list(self.names[one]) for one in ("by", "time", "observation", "inputs"))
        rows = rows.sort_values([*time, *observation, *inputs], kind="stable", ignore_index=True)
        values = rows[observation].to_numpy(dtype=float, na_value=np.nan)
        if len(observation) == 1 and observation_shape(self.model) in ((), None):
            values = values[:, 0]
        given = None
        if inputs:
            given = as_the_model_has_them(
                rows[inputs].to_numpy(dtype=float, na_value=np.nan), tuple(inputs), self.model
            )
        stream = name[0] if len(name) == 1 else tuple(name)
        content, columns = self.keyed.update(stream, content, values, _times(rows[time[0]]), given)
        found = pd.DataFrame(columns)
        found["flagged"] = [None if value != value else bool(value) for value in columns["flagged"]]
        for place, column in enumerate([*by, *time]):
            found.insert(place, column, rows[column])
        return content, found


@functools.lru_cache(maxsize=8)
def work_of(payload: bytes) -> Work:
    """The same object for every task of a worker: what it compiled serves them all."""
    return pickle.loads(payload)


def whole_stream(payload: bytes, name: tuple, rows: Any) -> Any:
    return work_of(payload).update(name, None, [rows])[1]


def _times(column: Any) -> np.ndarray:
    """Numbers, or dates; missing ones are NaN or NaT, and refused row by row."""
    if column.dtype.kind == "M" or str(column.dtype).startswith("datetime64"):
        plain = column.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(column.dtype, "tz", None) else column
        return plain.to_numpy(dtype="datetime64[us]")
    return column.to_numpy(dtype=float, na_value=np.nan)
