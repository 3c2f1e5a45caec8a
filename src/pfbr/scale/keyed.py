"""One of very many streams: its posterior as bytes and new rows go in, the bytes after them and answers come out.

Nothing is kept in between, so that any engine with a store of bytes by key can call it, as often as it likes: the same
bytes and rows give the same bytes and answers.
"""

import dataclasses
import zlib
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np

from pfbr.checks import checked_key
from pfbr.errors import FileError, PfbrError
from pfbr.inference import session_file
from pfbr.inference.clock import Clock
from pfbr.inference.fingerprint import Fingerprint, fingerprint
from pfbr.inference.info import Info
from pfbr.inference.panel.numbers import number_of
from pfbr.inference.panel.reports import ReportReader
from pfbr.inference.refusal import Fault, fault_in_words
from pfbr.inference.registry import as_method
from pfbr.inference.replay import Position, Replayed, Report, replay, with_late
from pfbr.inference.rows import Row
from pfbr.inference.saving import restored
from pfbr.inference.session import Session
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.scale.absorbing import absorb
from pfbr.scale.answers import Answers

FIRST = "first"
VERSION = 1  # of the bytes around a session's; those have a layout of their own
MARK = b"pfbr-keyed "


@dataclasses.dataclass(frozen=True)
class KeyedSettings:
    """Those of a session. `start`: "first" puts the prior of each stream at the time of its first row."""

    method: Any = "auto"
    key: int = 0
    num_particles: int = 64
    history: int = 256  # rows kept of each stream, so that its bytes stay few
    start: Any = FIRST
    time_unit: str | None = None
    undo: int = 0  # states kept to put late rows in their place; each makes the bytes more


class Keyed:
    """Updates streams of one model, each from its bytes. `answers` says what is told of each row."""

    def __init__(self, model: Model, settings: KeyedSettings, answers: Answers):
        self.model = checked_methods_of(checked_model(model))
        self.settings, self.answers = settings, answers
        self.method = as_method(settings.method, self.model, history=settings.history)
        self._reader = ReportReader(self.model)
        self._key = checked_key(settings.key)
        self._seen: session_file.Seen = {}
        self._about: dict[Any, tuple[Row, Fingerprint]] = {}  # by the form of rows

    def update(
        self, stream: Hashable, content: bytes | None, observations: np.ndarray, times: np.ndarray, inputs: Any = None
    ) -> tuple[bytes | None, dict[str, np.ndarray]]:
        """The bytes after rows that are in order of time, and what is told of each, by column. `content` None is a
        stream that was never seen; None comes back while none of its rows could be used."""
        session = self._session(stream, content, times)
        clock = session._clock
        reports = self._reader.read(observations, [0] * len(observations), times, inputs, clock)
        table = self.answers.table(len(observations))
        table.errors.update(reports.refused)
        at = np.zeros(len(observations)) if reports.at is None else reports.at
        fine = np.array([row for row in range(len(observations)) if row not in reports.refused], np.int64)
        ordered = self._reader.takes_dt
        late = fine[at[fine] < clock.now] if ordered else fine[:0]
        fine = fine[len(late) :] if ordered else fine
        last = max(len(fine) - self.settings.undo, 0)
        for row in late:
            self._single(session, reports.rows, int(row), at, table)
        self._scan(session, reports.rows, fine[:last], at, table)
        for row in fine[last:]:
            self._single(session, reports.rows, int(row), at, table)
        after = content if session.stage == 0 else self._bytes(session)
        return after, table.columns()

    def _session(self, stream: Hashable, content: bytes | None, times: np.ndarray) -> Session:
        if content is not None:
            kept = session_file.from_bytes(unwrapped(content), self.model, "the state of this stream", self._seen)
            session = restored(Session, kept, self.model)
            self._reader.resume(session._example)  # type: ignore[arg-type]
            return session
        s = self.settings
        start = s.start
        if isinstance(start, str) and start == FIRST:
            start = next((time for time in times if time == time), 0.0)
        own = jax.random.fold_in(self._key, number_of(stream))
        settings: dict[str, Any] = {"num_particles": s.num_particles, "time_unit": s.time_unit, "undo": s.undo}
        session = Session(self.model, method=self.method, key=own, **settings)
        session._clock = Clock(start, s.time_unit)
        return session

    def _bytes(self, session: Session) -> bytes:
        """What tells the model and the rows' form is the same in all streams, so that whoever opens many looks at it
        once: it is taken at a row of ones, which does not depend on the stream that came first."""
        leaves, structure = jax.tree.flatten(session._example)
        form = (structure, *(np.shape(leaf) for leaf in leaves))
        if form not in self._about:
            ones = jax.tree.map(np.ones_like, session._example)
            self._about[form] = ones, fingerprint(self.model, ones)
        session._example, session._fingerprint = self._about[form]
        return wrapped(session.to_bytes(undo=self.settings.undo > 0))

    def _scan(self, session: Session, rows: Row, which: np.ndarray, at: np.ndarray, table: Any) -> None:
        """Rows in order, in compiled scans."""
        if not which.size:
            return
        since = np.maximum(np.diff(at[which], prepend=session._clock.now), 0.0)
        own = jax.tree.map(lambda leaf: np.asarray(leaf)[which], rows)
        dt = None if rows.dt is None else since.astype(np.asarray(rows.dt).dtype)
        own = Row(own.observation, own.observed, dt, own.inputs)
        state = session._position(jax.tree.map(lambda leaf: leaf[0], own)).state
        stage, now, evidence, begin = session.stage, session._clock.now, session.log_evidence, 0
        for after, said, number in absorb(session._key, self.method, self.model, state, own):
            part = which[begin : begin + number]
            fine = said.fault[:number] == Fault.NONE
            for place in np.flatnonzero(~fine):
                share = 0.0 if said.info.undefined is None else float(said.info.undefined[place])
                table.errors[int(part[place])] = fault_in_words(int(said.fault[place]), "this row", share)
            gained = np.zeros(number) if said.info.log_predictive is None else said.info.log_predictive[:number]
            totals = evidence + np.cumsum(np.where(fine, gained, 0.0).astype(np.float64))
            stages = stage + np.cumsum(fine)
            table.put(part, said.particles, said.parameters, said.info, totals, stages)
            state, stage, evidence, begin = after, int(stages[-1]), float(totals[-1]), begin + number
            if fine.any():
                now = max(now, float(at[part[fine]].max()))
        session._adopt(Replayed(list(session._past), Position(state, stage, now, evidence), Info()))

    def _single(self, session: Session, rows: Row, row: int, at: np.ndarray, table: Any) -> None:
        """One row as a session takes it: put in its place where it is late, or refused."""
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[row], rows)
        report = Report(Row(one.observation, one.observed, None, one.inputs), float(at[row]), rows.dt is not None)
        past, undo = list(session._past), self.settings.undo
        try:
            if report.at < session._clock.now and self._reader.takes_dt:
                replayed = with_late(session._next, past, report, undo=undo, told=session._told)
            else:
                here = session._position(session._dated(report, session._clock.now))
                replayed = replay(session._next, past, here, [report])
        except PfbrError as error:
            table.errors[row] = str(error)
            return
        session._adopt(replayed)
        own, info = replayed.end.state.own, replayed.info
        shown = (self.method.particles(own), self.method.parameters(self.model, own), info)
        many = jax.tree.map(lambda leaf: np.asarray(leaf)[None], shown)
        table.put(np.array([row]), *many, np.array([session.log_evidence]), np.array([session.stage]))


def wrapped(content: bytes) -> bytes:
    """A session's bytes, smaller, behind a line that tells how."""
    return MARK + f"{VERSION}\n".encode() + zlib.compress(content, 1)


def unwrapped(content: bytes) -> bytes:
    """What `wrapped` was given; what another version wrote is refused."""
    first, _, rest = bytes(content).partition(b"\n")
    if not first.startswith(MARK) or not first.removeprefix(MARK).isdigit():
        raise FileError("the state of this stream is not what pfbr wrote: begin with a checkpoint folder of its own.")
    version = int(first.removeprefix(MARK))
    if version != VERSION:
        raise FileError(
            f"the state of this stream has version {version}, and this pfbr reads version {VERSION}: go on with the "
            "pfbr that wrote it, or begin again with another checkpoint folder."
        )
    try:
        return zlib.decompress(rest)
    except zlib.error as error:
        raise FileError(f"the state of this stream is damaged ({error}): restore its checkpoint folder.") from None
