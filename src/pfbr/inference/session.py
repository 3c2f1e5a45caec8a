"""One observation at a time: a posterior that is updated as they come in."""

import os
import warnings
from collections import deque
from functools import partial
from typing import Any

import jax
import numpy as np

from pfbr.checks import checked_count, checked_key, checked_num_particles
from pfbr.errors import InputError
from pfbr.inference import session_file
from pfbr.inference.catching_up import caught_up, row_at, times_of
from pfbr.inference.clock import Clock
from pfbr.inference.fingerprint import Fingerprint
from pfbr.inference.forecast import Forecast, drawn_ahead, read_ahead
from pfbr.inference.from_draws import prior_from_draws
from pfbr.inference.in_time import limited
from pfbr.inference.info import Info
from pfbr.inference.method import Method, State, record_on
from pfbr.inference.posterior import Posterior, Trace
from pfbr.inference.progress import shown
from pfbr.inference.refusal import refuse_without_posterior
from pfbr.inference.registry import as_method
from pfbr.inference.replay import Kept, Position, Replayed, Report, find, replay, with_late, with_other, without
from pfbr.inference.rows import Row, RowReader
from pfbr.inference.saving import restored, saved
from pfbr.inference.scoring import check_scorable, score_recorded, score_row, with_details
from pfbr.inference.smoothing.result import Smoothed
from pfbr.inference.smoothing.smooth import check_moves, checked_lag, smooth_kept
from pfbr.inference.stepping import Stepper, start_compiled
from pfbr.inference.taking_back import check_downdate
from pfbr.io.files import write_bytes
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.inverse_likelihood import InverseLikelihood
from pfbr.models.unknowns import Unknowns
from pfbr.particles.fitted_density import Quality
from pfbr.typing import Numbers


class Session:
    """A posterior that is updated as observations come in.

    `method` is a name ("auto", "gaussian", a trained operator's file, a rival) or a method itself. `history` is how
    many rows are kept so that targets stay exact, 0 for none. `start` is the time of the prior. A refused observation
    leaves the session as it was. `undo` says how many of the last reports can be changed: taken back, replaced, or
    have a late one put before them. With `scores`, every update tells how good the forecast of its observation was.
    With `max_ms` an update answers within so many milliseconds: one that takes longer goes on beside the next reports,
    which are weighed and flagged meanwhile. What has caught up is what it would be without a limit, bit for bit.
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
        scores: bool = False,
        max_ms: float | None = None,
    ):
        self._key = checked_key(key)
        self.model = checked_methods_of(checked_model(model))
        self.num_particles = checked_num_particles(num_particles, dim=int(model.dim))
        undo = checked_count("undo", undo, least=0, why="a number of past states to keep")
        self.method = as_method(method, self.model, history=history)
        self._stepper = Stepper(self._key, self.method, self.model)
        self._unknowns = Unknowns.of(model)
        self._clock = Clock(start, time_unit)
        self._rows = RowReader(self.model)
        self._state: State | None = None  # made when first asked for: rows tell shapes that a model may not
        self.stage = 0
        self.log_evidence = 0.0
        self.prior_fit: Quality | None = None  # of a prior from draws
        self._past: deque[Kept] = deque(maxlen=undo)
        self._example: Row | None = None  # the row that the state was made for
        self._fingerprint: Fingerprint | None = None  # of the model, once it was asked for
        self._scores = scores
        if scores:
            check_scorable(self.model)
        steps = (self._next, self._weighed if self._stepper.weighs else None)
        self._in_time = None if max_ms is None else limited(max_ms, *steps, undo=undo, scores=scores)

    @classmethod
    def from_draws(cls, model: Model, draws: Any, *, weights: Numbers | None = None, **settings: Any) -> "Session":
        """A session whose prior is somebody else's posterior: a density fitted to draws (n, d), or to a dict of (n, …)
        on the user's scale, equally weighted unless `weights` come with them. `settings` are those of a session.

        `session.prior_fit` tells how good the fit is; where it is not to be trusted, a warning says why.
        """
        replaced, fit = prior_from_draws(checked_model(model), draws, weights)
        session = cls(replaced, **settings)
        session.prior_fit = fit
        if fit.flagged:
            warnings.warn(f"the density fitted to `draws` may be wrong: {'; '.join(fit.reasons)}.", stacklevel=2)
        return session

    def update(self, observation: Numbers | None, *, time: Any = None, inputs: Any = None) -> Posterior:
        """The posterior after one more observation; None or NaN: what was not observed.

        `time` and `inputs` are what the model's methods ask for; without a time, one unit has passed. A time before the
        last one's is that of a late report: it is put in its place and what came after it is replayed, as far back as
        `undo` goes. Of a static unknown that does not look at time, the order is of no matter: it is absorbed.
        """
        at = self._clock.now + 1.0 if time is None else self._clock.elapsed(time)
        report = Report(self._rows.read(observation, inputs=inputs), at, time is not None)
        if at < self._clock.now and self._in_order:
            self._settle()
            undo = self._past.maxlen or 0
            return self._gone_to(with_late(self._next, list(self._past), report, undo=undo, told=self._told))
        here = self._position(self._dated(report, self._clock.now))
        if self._in_time is not None:
            replayed, refused = self._in_time.update(list(self._past), here, report)
            if refused is not None:
                self._adopt(replayed)
                raise refused
            return self._gone_to(replayed)
        more = self._score(here, report) if self._scores else {}
        return self._gone_to(replay(self._next, list(self._past), here, [report]), more)

    def settle(self) -> Posterior:
        """Wait for what `max_ms` has put off: the posterior of all reports so far, as without a limit."""
        done = self._settle()
        return self.posterior if done is None else self._posterior(done.info)

    def update_many(
        self, observations: Numbers, *, times: Any = None, inputs: Any = None, progress: bool = False
    ) -> Trace:
        """Catch up on a stream (T, …) in one compiled scan: the particles that as many updates give.

        `times` and `inputs` lead as the observations do; times go on from the last one. Where a row is refused, the
        error names it and nothing has changed. With `progress`, a bar shows how far it is.
        """
        self._settle()
        stream, many = self._rows.read_stream(observations, times=times, inputs=inputs, clock=self._clock)
        if many:
            raise InputError(f"a session is one stream, (T, …); got many, {np.shape(observations)}. `pfbr.run` them.")
        at = times_of(self._clock, times, stream.observations.shape[0])
        begin = self._position(row_at(stream, 0))
        number, keep = np.asarray(self.stage, np.int32), self._past.maxlen or 0
        with shown(len(stream.observations), progress):
            said = record_on(self._key, self.method, self.model, begin.state, stream, number, keep, progress)
        refuse_without_posterior(said.particles, said.info, lambda index: f"row {int(index[0]) + 1} of the table")
        scored = partial(score_recorded, self._key, self.model, said, stream, stage=self.stage, now=self._clock.now)
        done = caught_up(said, stream, at, times is not None, begin)
        self._adopt(Replayed([*self._past, *done.kept], done.end, done.info))
        return Trace(said.particles, done.info, self._unknowns, said.parameters, scored=scored, session=lambda: self)

    def predict(self, horizon: int | None = None, *, times: Any = None, inputs: Any = None) -> Forecast:
        """States and observations to come, after `horizon` units of time one by one, or at `times` in the session's own
        clock; `inputs` with a row for each, where the model asks for them.

        Draws are equally weighted and parameters go with their states. Nothing of the session changes, and the same
        call gives the same forecast.
        """
        ahead, shown, length = read_ahead(self._rows, self._clock, horizon, times, inputs)
        drawn = drawn_ahead(self._key, self.stage, self.method, self.model, self._current(), ahead, length)
        return Forecast(shown, drawn, self.model)

    def retract(
        self,
        observation: Numbers | None = None,
        *,
        number: int | None = None,
        time: Any = None,
        inputs: Any = None,
    ) -> Posterior:
        """Take an observation back.

        Without an argument, the last one, and for moving unknowns the move before it; the posterior is then bit for
        bit what it was. So many in a row can be taken back as `undo` says. By `number` (its place in the stream, from
        1) or `time`, one of the last `undo` reports: those after it are replayed, as if it had never come. With an
        observation, that one, however long ago it came, where the unknown is at rest: an update with the inverse
        likelihood, which can itself be undone.
        """
        self._settle()
        if observation is not None:
            if number is not None or time is not None:
                raise InputError("name the report by its value, its `number` or its `time`: one of them.")
            return self._downdated(observation, inputs)
        if number is None and time is None and self._past:
            return self._gone_to(Replayed(list(self._past)[:-1], self._past[-1].before, Info()))
        return self._gone_to(without(self._next, list(self._past), self._find(number, time)))

    def replace(
        self, observation: Numbers | None, *, number: int | None = None, time: Any = None, inputs: Any = None
    ) -> Posterior:
        """Correct one of the last `undo` reports, by its `number` or `time`, or the last one; None: nothing was seen.

        Its time stays, and so do its inputs where none are given; those after it are replayed, as if it had come right.
        """
        self._settle()
        place = self._find(number, time)
        old = self._past[place].report
        given = old.row.inputs if inputs is None and old is not None else inputs
        return self._gone_to(
            with_other(self._next, list(self._past), place, self._rows.read(observation, inputs=given))
        )

    def smooth(self, lag: int | None = None) -> Smoothed:
        """The states of the last `lag` reports before this one, and of this one, given all so far: lag + 1 stages.

        As many can be smoothed as `undo` keeps; without a `lag`, all of these.
        """
        self._settle()
        check_moves(self.model)
        lag = checked_lag(lag, kept=len(self._past), undo=self._past.maxlen or 0)
        kept = list(self._past)[len(self._past) - lag :]
        states = [*(one.before.state for one in kept), self._current()]
        rows = [self._dated(one.report, one.before.now) for one in kept if one.report is not None]
        return smooth_kept(self._key, self.method, self.model, states, rows)

    @property
    def posterior(self) -> Posterior:
        """The current posterior, before or after any update."""
        return self._posterior(Info())

    def plot(self, *, names: Any = None, truth: Any = None, axes: Any = None) -> Any:
        """A figure (matplotlib) of the current posterior: the density of each unknown, or of those in `names`."""
        return self.posterior.plot(names=names, truth=truth, axes=axes)

    def save(self, path: str | os.PathLike, *, undo: bool = True) -> None:
        """Write the session to one file, whole or not at all, to go on from there bit for bit.

        The method and the kept past are inside, the model is not. Without `undo` a restored session cannot take back
        what came before.
        """
        write_bytes(path, self.to_bytes(undo=undo))

    def to_bytes(self, *, undo: bool = True) -> bytes:
        """What `save` writes."""
        self._settle()
        return session_file.to_bytes(saved(self, undo), self.model)

    @classmethod
    def restore(cls, path: str | os.PathLike, model: Model) -> "Session":
        """The session that `save` wrote; another model than that one's is refused with what differs."""
        return restored(cls, session_file.read(path, checked_model(model)), model)

    @classmethod
    def from_bytes(cls, data: bytes, model: Model) -> "Session":
        """The session that `to_bytes` wrote."""
        return restored(cls, session_file.from_bytes(data, checked_model(model)), model)

    def _settle(self) -> Replayed | None:
        done = None if self._in_time is None else self._in_time.settled()
        if done is not None:
            self._adopt(done)
        return done

    @property
    def _in_order(self) -> bool:
        """Whether the order of reports matters."""
        return isinstance(self.model, StateSpaceModel) or self._rows.needs_dt

    def _told(self, at: float) -> Any:
        """An elapsed time as the user says it."""
        return self._clock.moments(np.array([at]))[0]

    def _find(self, number: int | None, time: Any) -> int:
        at = None if time is None else self._clock.elapsed(time)
        return find(list(self._past), number=number, at=at, stage=self.stage, undo=self._past.maxlen or 0)

    def _downdated(self, observation: Numbers, inputs: Any) -> Posterior:
        check_downdate(self.model, self.method, self.stage)
        row = self._rows.read(observation, inputs=inputs)
        known = getattr(self.method, "remembers", lambda state, row: None)(self._current().own, row)
        if known is False:
            raise InputError(f"{np.asarray(observation)} is not among the observations that this session has kept.")
        here, what = self._position(row), f"taking back {np.asarray(observation)}"
        model = InverseLikelihood(self.model)
        state, info = Stepper(self._key, self.method, model)(-self.stage, here.state, row, what)
        end = Position(state, self.stage - 1, here.now, here.log_evidence + _gained(info))
        return self._gone_to(Replayed([*self._past, Kept(here, None)], end, info))

    def _current(self, row: Row | None = None) -> State:
        if self._state is None:
            self._example = row or self._rows.example()
            self._state = start_compiled(*self._beginning(self._example))
        return self._state

    def _beginning(self, row: Row) -> tuple:
        """What a first state is made of; the row tells shapes."""
        example, shape = row.conditions(self.model), np.shape(row.observation)
        return self._key, self.method, self.model, self.num_particles, example, shape

    def _position(self, row: Row | None = None) -> Position:
        return Position(self._current(row), self.stage, self._clock.now, self.log_evidence)

    def _next(self, here: Position, report: Report) -> tuple[Position, Info]:
        """One step on; nothing of the session changes. The number of the step is its place, and so is its key."""
        number, row = here.stage + 1, self._dated(report, here.now)
        state, info = self._stepper(number, here.state, row, f"observation {number}")
        now = max(here.now, report.at)
        return Position(state, number, now, here.log_evidence + _gained(info)), info

    def _weighed(self, here: Position, report: Report) -> tuple[Position, Info, bool] | None:
        """One step on by weighing alone, whether or not that is enough."""
        number, row = here.stage + 1, self._dated(report, here.now)
        found = self._stepper.weighed(number, here.state, row)
        if found is None:
            return None
        state, info, enough = found
        return Position(state, number, max(here.now, report.at), here.log_evidence + _gained(info)), info, enough

    def _dated(self, report: Report, now: float) -> Row:
        """The row with its elapsed time; None is an ordinary step, of a model that does not look at time, where the
        user did not say when."""
        counts = report.timed or self._rows.needs_dt
        return report.row.after(max(report.at - now, 0.0) if counts else None)

    def _score(self, here: Position, report: Report) -> dict[str, np.ndarray]:
        row = self._dated(report, here.now)
        return score_row(self._key, here.stage, self.method, self.model, here.state, row, report.at)

    def _gone_to(self, replayed: Replayed, more: dict[str, np.ndarray] | None = None) -> Posterior:
        self._adopt(replayed)
        return self._posterior(with_details(replayed.info, more) if more else replayed.info)

    def _adopt(self, replayed: Replayed) -> None:
        """Everything that changes, at once."""
        end = replayed.end
        self._past = deque(replayed.kept, maxlen=self._past.maxlen)
        self._state, self.stage, self._clock.now, self.log_evidence = end.state, end.stage, end.now, end.log_evidence

    def _posterior(self, info: Info) -> Posterior:
        own = self._current().own
        particles, parameters = partial(self._stepper.particles, own), self._stepper.parameters(self.model, own)
        posterior = Posterior(particles, info, self._unknowns, parameters)
        if info.log_predictive is not None:
            posterior.info.log_evidence = self.log_evidence  # summed in float64
        return posterior


def _gained(info: Info) -> float:
    """Float64 on the host, which a long stream needs."""
    return 0.0 if info.log_predictive is None else float(info.log_predictive)
