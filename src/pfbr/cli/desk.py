"""Answers to the lines of a live stream: one session for each stream, and no line counted twice."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from pfbr.cli import forecasts
from pfbr.cli.lines import Columns, Line, parse_line
from pfbr.cli.posteriors import answer_of
from pfbr.errors import PfbrError
from pfbr.inference.posterior import Posterior
from pfbr.inference.session import Session
from pfbr.models.base import Model, has_observations
from pfbr.models.conditions import observation_shape

LEVELS = np.array([0.05, 0.5, 0.95])  # quantiles of a forecast
StreamId = str | int | float | None


class Desk:
    """Takes lines and gives answers. Lines without an "id" belong to one stream, whose key is `key`; stream number s
    of those with one has the key `fold_in(key, s)`.

    A line whose number "n" is not above the highest so far was answered before: it is answered again, and changes
    nothing.
    """

    def __init__(self, model: Model, settings: dict[str, Any], columns: Columns = Columns()):
        self.model, self.settings, self.columns = model, settings, columns
        self.sessions: dict[StreamId, Session] = {}
        self.named = 0  # streams with an id so far
        self.highest: int | None = None  # of the numbers of lines
        self.last: dict[str, Any] | None = None  # the answer to that line
        self._shape = observation_shape(model)
        self._observes = has_observations(model)
        self._first = Session(model, **settings)  # at once: wrong settings are no fault of the first line

    def session(self, stream: StreamId) -> Session:
        """The session of a stream; a new one is not among the others until it has taken a line."""
        if stream in self.sessions:
            return self.sessions[stream]
        if stream is None:
            return self._first
        key = jax.random.fold_in(jax.random.key(self.settings["key"]), self.named)
        return Session(self.model, **(self.settings | {"key": key, "method": self._first.method}))

    def respond(self, text: str, where: str, on_posterior: Callable[[Posterior, Line], None] | None = None):
        """The answer to one line, and whether it changed anything; a bad line raises and changes nothing."""
        line = parse_line(text, self._shape, where, self.columns)
        if line.n is not None and self.highest is not None and line.n <= self.highest and not line.asks:
            again = self.last if line.n == self.highest and self.last is not None else {"highest": self.highest}
            return {**_marks(line), **again, "again": True}, False
        session = self.session(line.id)
        if line.asks:
            return _marks(line) | {"stage": session.stage, "forecast": self._forecast(session, line)}, False
        posterior = _moved(session, line)
        if line.id not in self.sessions:
            self.sessions[line.id] = session
            self.named += line.id is not None
        answer = _marks(line) | answer_of(posterior, session.stage)
        if line.n is not None:
            self.highest, self.last = line.n, answer
        if on_posterior is not None:
            on_posterior(posterior, line)
        return answer, True

    def _forecast(self, session: Session, line: Line) -> Any:
        steps: dict[str, Any] = {"horizon": line.predict} if isinstance(line.predict, int) else {"times": line.predict}
        return forecasts.as_json(session.predict(**steps, inputs=line.inputs), LEVELS, self._observes)


def error_answer(number: int, error: PfbrError) -> dict[str, Any]:
    return {"line": number, "error": str(error)}


def _moved(session: Session, line: Line) -> Posterior:
    if line.retract:
        return session.retract(line.observation, number=line.number, time=line.time, inputs=line.inputs)
    if line.replace:
        return session.replace(line.observation, number=line.number, time=line.time, inputs=line.inputs)
    return session.update(line.observation, time=line.time, inputs=line.inputs)


def _marks(line: Line) -> dict[str, Any]:
    """What tells the sender which line this answers."""
    marks = {"n": line.n, "id": line.id}
    return {name: value for name, value in marks.items() if value is not None}
