"""One observation at a time: a posterior that is updated as they come in."""

import dataclasses
import os
from collections import deque
from typing import Any

import equinox as eqx
import jax
import numpy as np

from pfbr.checks import checked_count, checked_key, checked_num_particles
from pfbr.errors import InputError
from pfbr.inference import session_file
from pfbr.inference.clock import Clock
from pfbr.inference.fingerprint import Fingerprint, fingerprint
from pfbr.inference.info import Info
from pfbr.inference.method import Method, State, advance, start, step_key, try_weighing
from pfbr.inference.posterior import Posterior
from pfbr.inference.refusal import refuse_without_posterior
from pfbr.inference.registry import as_method
from pfbr.inference.rows import Row, RowReader
from pfbr.inference.session_file import Moment, SavedSession
from pfbr.inference.smoothing.result import Smoothed
from pfbr.inference.smoothing.smooth import check_moves, checked_lag, smooth_kept
from pfbr.io.files import write_bytes
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.inverse_likelihood import InverseLikelihood
from pfbr.models.unknowns import Unknowns
from pfbr.typing import Numbers

_start = eqx.filter_jit(start)  # op by op, the first particles would take longer to compile


@eqx.filter_jit
def _step(key, number, method: Method, model: Model, state: State, row: Row):
    """One step with a key that depends on its number; derived inside, where it costs nothing."""
    return advance(step_key(key, number), method, model, state, row.observation, row.given)


@eqx.filter_jit
def _weigh(key, number, method: Method, model: Model, state: State, row: Row):
    """The cheap first try of the same step, compiled apart: it answers while the rest need not exist yet."""
    return try_weighing(step_key(key, number), method, model, state, row.observation, row.given)


class Session:
    """A posterior that is updated as observations come in.

    `method` is a name ("auto", "gaussian", a trained operator's file, a rival) or a method itself. `history` is how
    many rows are kept so that targets stay exact, 0 for none. `start` is the time of the prior. A refused observation
    leaves the session as it was. `undo` says how many updates in a row can be taken back bit for bit.
    """

    def __init__(
        self,
        model: Model,
        *,
        method: str | Method = "auto",
        key: int | jax.Array = 0,
        num_particles: int = 256,
        history: int = 4096,
        start: Any = 0.0,
        time_unit: str | None = None,
        undo: int = 8,
    ):
        self._key = checked_key(key)
        self.model = checked_methods_of(checked_model(model))
        self.num_particles = checked_num_particles(num_particles)
        undo = checked_count("undo", undo, least=0, why="a number of past states to keep")
        self.method = as_method(method, self.model, history=history)
        self._weighs = type(self.method).weigh is not Method.weigh
        self._unknowns = Unknowns.of(model)
        self._clock = Clock(start, time_unit)
        self._rows = RowReader(self.model)
        self._state: State | None = None  # made when first asked for: rows tell shapes that a model may not
        self.stage = 0
        self.log_evidence = 0.0
        self._past: deque[Moment] = deque(maxlen=undo)  # what `retract()` goes back to
        self._example: Row | None = None  # the row that the state was made for
        self._fingerprint: Fingerprint | None = None  # of the model, once it was asked for

    def update(self, observation: Numbers | None, *, time: Any = None, inputs: Any = None) -> Posterior:
        """The posterior after one more observation; None or NaN: what was not observed.

        `time` and `inputs` are what the model's methods ask for; without a time, one unit has passed.
        """
        now = self._clock.now + 1.0 if time is None else self._clock.elapsed(time)
        if now < self._clock.now:
            raise InputError(
                f"`time` {time} lies before the last observation's: observations are taken in order of time. "
                "Retract later ones first."
            )
        dt = None if time is None and not self._rows.needs_dt else now - self._clock.now
        row = self._rows.read(observation, dt=dt, inputs=inputs)
        state, info = self._moved_on(self.model, row, self.stage + 1, f"observation {self.stage + 1}")
        self._keep(state, self.stage + 1, now, info, row)
        return self._posterior(info)

    def retract(self, observation: Numbers | None = None, *, inputs: Any = None) -> Posterior:
        """Take an observation back.

        Without an argument, the last one, and for moving unknowns the move before it; the posterior is then bit for
        bit what it was. So many in a row can be taken back as `undo` says. With an argument, that one, however long
        ago it came, where the unknown is at rest: an update with the inverse likelihood, which can itself be undone.
        """
        if observation is not None:
            return self._downdated(observation, inputs)
        if not self._past:
            why = f"the {self._past.maxlen} past states that it keeps are used up. Make it with a larger `undo`"
            if self.stage == 0:
                why = "there has been no observation yet; update it first"
            raise InputError(f"this session has nothing to retract: {why}.")
        self._go_back(self._past.pop())
        return self.posterior

    def smooth(self, lag: int | None = None) -> Smoothed:
        """The states of the last `lag` reports before this one, and of this one, given all so far: lag + 1 stages.

        As many can be smoothed as `undo` keeps; without a `lag`, all of these.
        """
        check_moves(self.model)
        lag = checked_lag(lag, kept=len(self._past), undo=self._past.maxlen or 0)
        kept = list(self._past)[len(self._past) - lag :]
        states = [*(one.state for one in kept), self._current()]
        rows = [one.row for one in kept if one.row is not None]  # all of them: only the current moment has none
        return smooth_kept(self._key, self.method, self.model, states, rows)

    @property
    def posterior(self) -> Posterior:
        """The current posterior, before or after any update."""
        return self._posterior(Info())

    def save(self, path: str | os.PathLike, *, undo: bool = True) -> None:
        """Write the session to one file, whole or not at all, to go on from there bit for bit.

        The method and the kept past are inside, the model is not. Without `undo` a restored session cannot take back
        what came before.
        """
        write_bytes(path, self.to_bytes(undo=undo))

    def to_bytes(self, *, undo: bool = True) -> bytes:
        """What `save` writes."""
        return session_file.to_bytes(self._saved(undo), self.model)

    @classmethod
    def restore(cls, path: str | os.PathLike, model: Model) -> "Session":
        """The session that `save` wrote; another model than that one's is refused with what differs."""
        return cls._resumed(session_file.read(path, checked_model(model)), model)

    @classmethod
    def from_bytes(cls, data: bytes, model: Model) -> "Session":
        """The session that `to_bytes` wrote."""
        return cls._resumed(session_file.from_bytes(data, checked_model(model)), model)

    def _saved(self, undo: bool) -> SavedSession:
        if self._fingerprint is None or (self._fingerprint.row is None and self._example is not None):
            self._fingerprint = fingerprint(self.model, self._example)
        return SavedSession(
            self.method,
            self._key,
            self.num_particles,
            self._past.maxlen or 0,
            self._clock.zero,
            self._clock.time_unit,
            self._example,
            None if self._state is None else self._moment(self._state),
            list(self._past) if undo else [],
            self._fingerprint,
        )

    @classmethod
    def _resumed(cls, saved: SavedSession, model: Model) -> "Session":
        session = cls(
            model,
            method=saved.method,
            key=saved.key,
            num_particles=saved.num_particles,
            start=saved.start,
            time_unit=saved.time_unit,
            undo=saved.undo,
        )
        session._fingerprint, session._example = saved.fingerprint, saved.example
        session._past.extend(saved.past)
        if saved.example is not None:
            session._rows.resume(saved.example)
        if saved.current is not None:
            session._go_back(saved.current)
        return session

    def _moment(self, state: State) -> Moment:
        return Moment(state, self.stage, self._clock.now, self.log_evidence)

    def _go_back(self, to: Moment) -> None:
        self._state, self.stage, self._clock.now, self.log_evidence = to.state, to.stage, to.now, to.log_evidence

    def _downdated(self, observation: Numbers, inputs: Any) -> Posterior:
        if isinstance(self.model, StateSpaceModel):
            raise InputError(
                "an earlier observation can be taken back only where the unknown does not move; `retract()` takes back "
                "the last one."
            )
        reason = getattr(self.method, "cannot_downdate", lambda: f"{type(self.method).__name__} cannot")()
        if reason is not None:
            raise InputError(f"{reason} take back an earlier observation: call `retract()` for the last one.")
        if self.stage == 0:
            raise InputError("this session has nothing to retract: there has been no observation yet.")
        row = self._rows.read(observation, dt=None, inputs=inputs)
        known = getattr(self.method, "remembers", lambda state, row: None)(self._current().own, row)
        if known is False:
            raise InputError(f"{np.asarray(observation)} is not among the observations that this session has kept.")
        model = InverseLikelihood(self.model)
        state, info = self._moved_on(model, row, -self.stage, f"taking back {np.asarray(observation)}")
        self._keep(state, self.stage - 1, self._clock.now, info, row)
        return self._posterior(info)

    def _current(self, row: Row | None = None) -> State:
        if self._state is None:
            first = row or self._rows.example()
            shape = np.shape(first.observation)
            example = first.conditions(self.model)
            self._example = first
            self._state = _start(self._key, self.method, self.model, self.num_particles, example, shape)
        return self._state

    def _moved_on(self, model: Model, row: Row, number: int, what: str) -> tuple[State, Info]:
        """The next state, unless it is none; nothing of the session has changed yet."""
        before = self._current(row)
        arguments = (self._key, np.asarray(number, np.int32), self.method, model, before, row)
        tried = _weigh(*arguments) if self._weighs else None
        state, info = tried[:2] if tried is not None and bool(tried[2]) else _step(*arguments)
        refuse_without_posterior(self.method.particles(state.own), info, lambda index: what)
        return state, info

    def _keep(self, state: State, stage: int, now: float, info: Info, row: Row) -> None:
        assert self._state is not None  # `_moved_on` made it
        self._past.append(dataclasses.replace(self._moment(self._state), row=row))
        self._state, self.stage, self._clock.now = state, stage, now
        if info.log_predictive is not None:
            self.log_evidence += float(info.log_predictive)  # float64 on the host

    def _posterior(self, info: Info) -> Posterior:
        if info.log_predictive is not None:
            total = np.asarray(self.log_evidence)
            info = eqx.tree_at(lambda i: i.log_evidence, info, total, is_leaf=lambda leaf: leaf is None)
        own = self._current().own
        parameters = self.method.parameters(self.model, own)
        return Posterior(self.method.particles(own), info, self._unknowns, parameters)
