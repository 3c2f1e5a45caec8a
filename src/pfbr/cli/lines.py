"""One observation and what came with it, from one line of JSON."""

import dataclasses
import difflib
import json
import math
from typing import Any

import numpy as np

from pfbr.cli import cells
from pfbr.errors import InputError

LONGEST = 10**7  # characters of a line


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns of a table, or fields of JSON objects, hold what. Nothing named: the usual fields."""

    time: str | None = None
    inputs: tuple[str, ...] = ()
    observation: tuple[str, ...] = ()
    by: str | None = None  # of tables: tells streams apart

    @classmethod
    def of(cls, time: str | None, inputs: str | None, observation: str | None, by: str | None = None) -> "Columns":
        """As they are written on the command line, with commas between."""
        several = [tuple(filter(None, map(str.strip, (text or "").split(",")))) for text in (inputs, observation)]
        return cls(time, several[0], several[1], by)

    @property
    def single(self) -> list[str]:
        """Those that hold one thing each."""
        return [name for name in (self.time, self.by) if name is not None]

    def __post_init__(self):
        names = [*self.single, *self.inputs, *self.observation]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"the column {twice[0]!r} is named twice: it holds one thing.")

    @property
    def named(self) -> bool:
        return bool(self.single or self.inputs or self.observation)

    def split(self, names: list[str], where: str) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
        """The columns with the time, the inputs and the observation, out of all `names`."""
        for wanted in (*self.single, *self.inputs, *self.observation):
            if wanted not in names:
                near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
                guess = f" Did you mean {near[0]!r}?" if near else ""
                raise InputError(
                    f"{where} has no column {cells.shortened(wanted)!r}.{guess} It has "
                    f"{cells.shortened(', '.join(names)) or 'none'}."
                )
            if names.count(wanted) > 1:
                raise InputError(f"{where} has {names.count(wanted)} columns {wanted!r}. Rename all but one.")
        rest = self.observation or tuple(n for n in names if n not in (*self.single, *self.inputs))
        if not rest:
            raise InputError(f"{where} has no column left for the observation.")
        return self.time, self.inputs, rest


@dataclasses.dataclass(frozen=True)
class Line:
    """One observation (None: nothing was observed), its time and inputs where they came with it.

    Or something else that is asked of a live stream: to take an observation back, or what comes next.
    """

    observation: np.ndarray | None
    time: cells.Time | None = None
    inputs: Any = None
    retract: bool = False  # whether the observation is to be taken back (None: the last one, or the named one)
    replace: bool = False  # whether it stands for another one: the last, or the named one
    number: int | None = None  # the stage of the one that is taken back or replaced
    predict: int | list[cells.Time] | None = None  # how many steps, or at which times
    id: str | int | float | None = None  # which of several streams
    n: int | None = None  # the sender's own number of the line

    @property
    def asks(self) -> bool:
        """Whether it changes nothing."""
        return self.predict is not None


def parse_line(text: str, shape: tuple[int, ...] | None, where: str, columns: Columns = Columns()) -> Line:
    """A number, a list, null, or an object with "observation" and, where they came with it, "time" and "inputs".

    With `columns`, an object with these fields. {"retract": null} takes back, {"predict": 3} looks ahead. Any object
    may have an "id", the stream that it belongs to, and "n", the sender's own number of the line.
    """
    try:
        if len(text) > LONGEST:
            raise InputError(f"{where} has {len(text)} characters, more than a line may have ({LONGEST}).")
        value = json.loads(
            text, parse_int=_finite, parse_float=_finite, parse_constant=_constant, object_pairs_hook=_once
        )
        return _line(value, shape, where, columns)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where} is not JSON ({error.msg} at column {error.colno}): {cells.shortened(text)}"
        ) from None
    except _TwiceError as error:
        raise InputError(f'{where} has the key "{cells.shortened(str(error))}" twice.') from None
    except _TooLargeError as error:
        raise InputError(f"{where} holds {cells.shortened(str(error))}, which is too large for a number.") from None
    except RecursionError:
        raise InputError(f"{where} is nested too deep: {cells.shortened(text)}") from None


def _line(value: Any, shape: tuple[int, ...] | None, where: str, columns: Columns) -> Line:
    if not isinstance(value, dict):
        return _content(value, shape, where, columns)
    named = {columns.time, *columns.inputs, *columns.observation}  # a user's own columns may be called so
    stream = columns.by or "id"
    rest = {name: one for name, one in value.items() if name not in (stream, "n") or name in named}
    marks = {name: one for name, one in value.items() if name not in rest}
    line = _content(rest, shape, where, dataclasses.replace(columns, by=None))
    return dataclasses.replace(line, id=_id(marks.get(stream), where), n=_number(marks.get("n"), where))


def _content(value: Any, shape: tuple[int, ...] | None, where: str, columns: Columns) -> Line:
    if isinstance(value, dict) and "retract" in value:
        return _changing(value, "retract", shape, where)
    if isinstance(value, dict) and "replace" in value and "observation" not in value:
        return _changing(value, "replace", shape, where)
    if isinstance(value, dict) and "predict" in value and "observation" not in value:
        return Line(None, None, _inputs(value, where), predict=_ahead(value["predict"], where))
    if columns.named:
        return _from_fields(value, shape, where, columns)
    if not isinstance(value, dict):
        return Line(_observation(value, shape, where))
    if "observation" not in value:
        raise InputError(
            f'{where} is an object without the key "observation"; it has {cells.shortened(", ".join(value)) or "none"}.'
        )
    for name in value.keys() - {"observation", "time", "inputs"}:
        near = difflib.get_close_matches(name, ("time", "inputs"), n=1, cutoff=0.75)
        if near and near[0] not in value:
            raise InputError(f'{where} has the key "{name}". Did you mean "{near[0]}"?')
    time = None if value.get("time") is None else cells.time(value["time"], f'{where}, "time"')
    return Line(_observation(value["observation"], shape, where), time, _inputs(value, where))


def _from_fields(value: Any, shape: tuple[int, ...] | None, where: str, columns: Columns) -> Line:
    """The fields that `columns` names, of an object; several of them make a vector."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object with the fields that were named; got {_kind(value)}.")
    time, inputs, observation = columns.split(list(value), where)
    seen = _fields(value, observation, where)
    if all(one is None for one in seen):
        seen = None
    elif len(observation) == 1:
        seen = seen[0]
    given = _fields(value, inputs, where)
    return Line(
        _observation(seen, shape, where),
        None if time is None else cells.time(value[time], f'{where}, "{time}"'),
        None
        if not inputs
        else _tree(given[0] if len(inputs) == 1 and isinstance(given[0], dict | list) else given, where),
    )


def _changing(value: dict, what: str, shape: tuple[int, ...] | None, where: str) -> Line:
    """A line that changes an earlier one, named by its "number" (its stage) or its "time"."""
    time = None if value.get("time") is None else cells.time(value["time"], f'{where}, "time"')
    number = _number(value.get("number"), where, "number")
    observation = _observation(value[what], shape, where)
    return Line(observation, time, _inputs(value, where), what == "retract", what == "replace", number)


def _id(value: Any, where: str) -> str | int | float | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return int(value) if value.is_integer() else value
    raise InputError(f'{where}: "id" must be a text or a number; got {cells.shortened(json.dumps(value))}.')


def _number(value: Any, where: str, name: str = "n") -> int | None:
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer() and 0 <= value <= 2**53:
        return int(value)
    raise InputError(f'{where}: "{name}" must be a whole number from 0; got {cells.shortened(json.dumps(value))}.')


def _ahead(value: Any, where: str) -> int | list[cells.Time]:
    """How many steps to come, or a list of times."""
    if isinstance(value, float) and value.is_integer() and value >= 1:
        return int(value)
    if isinstance(value, list) and value:
        return [cells.time(one, f'{where}, "predict"') for one in value]
    raise InputError(
        f'{where}: "predict" must be a number of steps to come, at least 1, or a list of times; got '
        f"{cells.shortened(json.dumps(value))}."
    )


def _fields(value: dict, names: tuple[str, ...], where: str) -> Any:
    return [value[name] for name in names]


def _inputs(value: dict, where: str) -> Any:
    return None if value.get("inputs") is None else _tree(value["inputs"], f'{where}, "inputs"')


def _tree(value: Any, where: str) -> Any:
    """An object as a dict of arrays, anything else as one array."""
    if isinstance(value, dict):
        return {name: _tree(one, where) for name, one in value.items()}
    return _array(value, where)


def _observation(value: Any, shape: tuple[int, ...] | None, where: str) -> np.ndarray | None:
    if value is None:
        return None
    array = _array(value, where)
    if shape in ((1,), ()) and array.size == 1:
        array = array.reshape(shape)
    if shape is not None and array.shape != shape:
        raise InputError(f"{where} must have shape {shape}; got {array.shape}.")
    return array


def _array(value: Any, where: str) -> np.ndarray:
    """Numbers, NaN for null."""
    if not _only_numbers(value):
        raise InputError(f"{where} must be a number or a list of numbers; got {cells.shortened(json.dumps(value))}")
    try:
        return np.asarray(value, dtype=float)  # null becomes NaN
    except ValueError:
        raise InputError(f"{where} is ragged: its inner lists have different lengths.") from None


def _only_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) > 0 and all(map(_only_numbers, value))
    return value is None or isinstance(value, float)  # every number was read as a float


class _TwiceError(Exception):
    """A key that stands twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return found


class _TooLargeError(Exception):
    """A number that is infinite as a float."""


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _TooLargeError(text)
    return value


def _constant(text: str) -> float:
    if text == "NaN":
        return math.nan
    raise _TooLargeError(text)


def _kind(value: Any) -> str:
    return {list: "a list", float: "a number", str: "a text", type(None): "null"}.get(type(value), "something else")
