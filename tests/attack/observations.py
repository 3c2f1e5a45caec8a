"""Observations, times and inputs that cannot be used; the session that refuses one stays as it was."""

import datetime
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.errors import PfbrError
from pfbr.inference.clock import Clock
from pfbr.models import GaussianMean
from tests.attack.case import Case, refused
from tests.attack.model_kinds import Driven, Moving, Mute, Named, changed

GROUP = "observations, times, inputs"
DAY = datetime.datetime(2024, 5, 1)


def _timed(self, key, x, *, dt):
    return x * jnp.exp(-dt) + jax.random.normal(key, (2,)) * jnp.sqrt(dt)


@functools.cache
def session(kind: str = "static", **settings: Any) -> pfbr.Session:
    """One that has not been updated: nothing that is refused needs a compiled step."""
    models: dict[str, Callable[[], Any]] = {
        "static": lambda: GaussianMean(2),
        "single": lambda: GaussianMean(1),
        "moving": Moving,
        "driven": Driven,
        "named": Named,
        "mute": Mute,
        "timed": lambda: changed(Moving, sample_transition=_timed, log_transition=pfbr.StateSpaceModel.log_transition),
    }
    return pfbr.Session(models[kind](), num_particles=16, **settings)


def stays(kind: str, observation: Any, settings: dict[str, Any] | None = None, **given: Any) -> None:
    """The attempt; whatever it raises, the session must be what it was."""
    target = session(kind, **(settings or {}))
    fresh = target._state is None  # the first state may be made: it is the prior's, whatever comes
    before = (target.stage, target.log_evidence, target._clock.now, target._state, len(target._past))
    try:
        target.update(observation, **given)
    except PfbrError:
        state = None if fresh else target._state
        after = (target.stage, target.log_evidence, target._clock.now, state, len(target._past))
        assert all(a is b or a == b for a, b in zip(before, after, strict=True)), "the session has changed"
        raise


def update(name: str, kind: str, observation: Any, says: str, settings: Any = None, **given: Any) -> Case:
    return refused(GROUP, name, lambda: stays(kind, observation, settings, **given), says)


def ran(name: str, model: Callable[[], Any], observations: Any, says: str, **given: Any) -> Case:
    return refused(GROUP, name, lambda: pfbr.run(model(), observations, num_particles=16, **given), says)


class _Odd:
    """Claims to be an array, and fails."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("not today")


class _Endless:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return _Endless()


OBSERVATIONS: dict[str, tuple[Any, str]] = {
    "a text": ("hot", "array of numbers"),
    "a text of a number": ("1.5", "."),
    "bytes": (b"1.5", "array of numbers"),
    "a dict": ({"y": 1.0}, "array of numbers"),
    "a set": ({1.0, 2.0}, "array of numbers"),
    "an object": (object(), "array of numbers"),
    "a function": (len, "array of numbers"),
    "a generator": ((i for i in (1.0, 2.0)), "array of numbers"),
    "complex": ([1j, 2.0], "complex"),
    "inf": ([1.0, np.inf], "inf"),
    "-inf": ([-np.inf, 0.0], "inf"),
    "beyond float32": ([1e300, 0.0], "inf"),
    "a whole number of 400 digits": ([10**400, 0], "numbers|inf|large"),
    "one too few": ([1.0], r"\(2,\).*\(1,\)"),
    "one too many": ([1.0] * 3, r"\(2,\).*\(3,\)"),
    "a matrix": (np.zeros((5, 2)), "pfbr.run"),
    "transposed": (np.zeros((2, 1)), r"\(2,\).*\(2, 1\)"),
    "ragged": ([[1.0], [1.0, 2.0]], "array of numbers"),
    "empty": ([], r"\(2,\).*\(0,\)"),
    "of strings": (["1", "b"], "array of numbers"),
    "dates": (np.array(["2024-01-01"] * 2, "datetime64[D]"), "array of numbers|number"),
    "a date": (DAY, "array of numbers"),
    "durations": (np.array([1, 2], "timedelta64[s]"), "array of numbers|number"),
    "structured": (np.zeros(2, [("a", "f4")]), "array of numbers"),
    "objects": (np.array([None, object()], object), "array of numbers"),
    "an array that fails": (_Odd(), "array of numbers"),
    "an endless list": (_Endless(), "array of numbers"),
    "texts in an array": (np.array(["a", "b"]), "array of numbers"),
    "truths": ([True, "x"], "array of numbers"),
}
TIMES: dict[str, tuple[Any, str]] = {
    "a text": ("noon", "date|number"),
    "None in a list": ([None], "number or a date"),
    "a truth": (True, "number or a date"),
    "NaN": (np.nan, "finite"),
    "inf": (np.inf, "finite"),
    "a list": ([1.0], "number or a date"),
    "a dict": ({}, "number or a date"),
    "complex": (1j, "number or a date"),
    "a date without a unit": (DAY, "time_unit"),
    "NaT": (np.datetime64("NaT"), "time"),
    "before the prior": (-5.0, "before|earlier"),
    "a whole number of 400 digits": (10**400, "time"),
    "an array": (np.zeros(3), "number or a date"),
    "a duration": (datetime.timedelta(1), "number or a date"),
    "a time of day": (datetime.time(12), "number or a date"),
    "an object": (object(), "number or a date"),
    "bytes": (b"1", "number or a date"),
    "huge": (1e308, "dt|large|finite"),
}
WITH_DATES: dict[str, tuple[Any, str]] = {
    "a number": (3.0, "date"),
    "NaT": (np.datetime64("NaT"), "NaT"),
    "a text that is none": ("2024-13-45", "date"),
    "earlier": (DAY - datetime.timedelta(1), "before"),
    "an empty text": ("", "date|time"),
    "a year beyond": ("99999999999-01-01", "date"),
}
INPUTS: dict[str, tuple[Any, str]] = {
    "none": (None, "inputs"),
    "a text": ("on", "inputs"),
    "NaN": ([np.nan, 0.0], "inputs.*nan"),
    "inf": ([np.inf, 0.0], "inputs.*inf"),
    "complex": ([1j, 0.0], "complex"),
    "None inside": ([None, 1.0], "inputs"),
    "ragged": ([[1.0], [1.0, 2.0]], "inputs"),
    "an object": (object(), "inputs"),
    "a dict of texts": ({"a": "b"}, "inputs"),
    "a function": (len, "inputs"),
    "an empty dict": ({}, "inputs"),
    "an empty list": ([], "inputs"),
}
STREAMS: dict[str, tuple[Any, str]] = {
    "empty": (np.zeros((0, 2)), "empty"),
    "a number": (3.0, "got"),
    "a text": ("text", "array of numbers"),
    "None": (None, "observations"),
    "five axes": (np.zeros((1,) * 5), "got"),
    "of another width": (np.zeros((4, 3)), r"\(4, 3\)"),
    "with inf": (np.full((4, 2), np.inf), "inf"),
    "ragged": ([[1.0, 2.0], [1.0]], "array of numbers"),
    "complex": (np.zeros((4, 2), complex), "complex"),
    "objects": (np.full((4, 2), None), "."),
    "a dict": ({"a": [1.0]}, "numbers|frame|observations"),
    "no streams": (np.zeros((0, 4, 2)), "empty"),
    "no rows in streams": (np.zeros((3, 0, 2)), "empty"),
}
STREAM_TIMES: dict[str, tuple[Any, str]] = {
    "too few": ([1.0, 2.0], "times"),
    "too many": ([1.0] * 9, "times"),
    "going back": ([1.0, 3.0, 2.0, 4.0], "go back.*observation 3"),
    "NaN": ([1.0, np.nan, 2.0, 3.0], "finite"),
    "texts": (list("abcd"), "time"),
    "None": ([1.0, None, 2.0, 3.0], "time"),
    "a number": (3.0, "times"),
    "mixed": ([1.0, DAY, 3.0, 4.0], "time|date"),
    "before the start": ([-4.0, -3.0, -2.0, -1.0], "back"),
    "a matrix": (np.zeros((4, 4)), "times"),
    "dates without a unit": (np.array(["2024-01-01"] * 4, "datetime64[D]"), "time_unit"),
    "complex": ([1j] * 4, "time"),
    "objects": ([object()] * 4, "time"),
    "a dict": ({}, "times"),
    "a text": ("abcd", "times"),
    "ragged": ([[1.0], [1.0, 2.0], [3.0], [4.0]], "times"),
}


def _cases() -> list[Case]:
    found = [update(f"an observation that is {n}", "static", o, s) for n, (o, s) in OBSERVATIONS.items() if s != "."]
    found += [update(f"a time that is {n}", "timed", np.zeros(2), s, time=t) for n, (t, s) in TIMES.items()]
    with_dates = {"start": DAY, "time_unit": "D"}
    found += [
        update(f"among dates, a time that is {n}", "timed", np.zeros(2), s, with_dates, time=t)
        for n, (t, s) in WITH_DATES.items()
    ]
    found += [update(f"inputs that are {n}", "driven", np.zeros(2), s, inputs=i) for n, (i, s) in INPUTS.items()]
    found += [
        update("inputs that nobody named", "static", np.zeros(2), "no method of GaussianMean names them", inputs=[1.0]),
        update("nothing, before a shape is known", "mute", None, "shape"),
        update("a part missing, one number for all", "moving", [1.0, np.nan], "components.*missing"),
        update("two numbers for one", "single", [1.0, 2.0], r"\(1,\).*\(2,\)"),
        update("a dict for named unknowns", "named", {"beta": 1.0}, "array of numbers"),
        refused(GROUP, "a time unit that is none", lambda: Clock(DAY, "fortnight"), "time_unit.*fortnight"),
        refused(GROUP, "a time unit that is a number", lambda: Clock(DAY, 7), "time_unit.*7"),
        refused(GROUP, "a time unit that is a list", lambda: Clock(DAY, ["s"]), "time_unit"),
        refused(GROUP, "a start that is NaN", lambda: session("static", start=float("nan")), "finite"),
        refused(
            GROUP, "a start that is a list", lambda: pfbr.Session(GaussianMean(2), start=[0.0]), "number or a date"
        ),
        refused(GROUP, "a start that is None", lambda: pfbr.Session(GaussianMean(2), start=None), "number or a date"),
        refused(GROUP, "a start that is a truth", lambda: session("static", start=True), "number or a date"),
        refused(GROUP, "nothing to retract", lambda: session("single").retract(), "nothing to retract"),
        refused(GROUP, "retract what was never there", lambda: session("single").retract(3.0), "retract|take back"),
        refused(GROUP, "retract of a moving unknown", lambda: session("moving").retract([3.0, 1.0]), "does not move"),
        refused(GROUP, "retract a text", lambda: session("single").retract("x"), "retract|take back|numbers"),
    ]
    found += [ran(f"a stream that is {n}", lambda: GaussianMean(2), o, s) for n, (o, s) in STREAMS.items() if s != "."]
    found += [
        ran(f"times of a stream that are {n}", Moving, np.zeros((4, 2)), s, times=t)
        for n, (t, s) in STREAM_TIMES.items()
    ]
    found += [
        ran("inputs of a stream that are missing", Driven, np.zeros((4, 2)), "inputs"),
        ran("inputs of a stream, too few", Driven, np.zeros((4, 2)), "lead with", inputs=np.zeros((3, 2))),
        ran("inputs of a stream, a number", Driven, np.zeros((4, 2)), "lead with", inputs=1.0),
        ran("inputs of a stream, NaN", Driven, np.zeros((4, 2)), "inputs.*nan", inputs=np.full((4, 2), np.nan)),
        ran("gaps in part of a stream", Moving, np.array([[1.0, np.nan]] * 4), "components.*missing"),
        ran("times for many streams, too few", Moving, np.zeros((3, 4, 2)), "times", times=np.zeros((2, 4))),
    ]
    return found


CASES = _cases()
