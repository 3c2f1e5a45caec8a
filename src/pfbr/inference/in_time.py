"""Answers in time: a step that takes too long goes on in a thread, and until it is done its reports are only weighed.

The whole steps are made one after another as without a limit, so that a stream that has caught up stands where it would
stand, bit for bit. What is answered in between is provisional: the same reports weighed, without moving a particle.
"""

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from pfbr.errors import InputError, PfbrError
from pfbr.inference.info import Info
from pfbr.inference.replay import NOTHING, Kept, Position, Replayed, Report, Step, replay

# where weighing leads, what it says, whether it is enough; None where it leaves no posterior
Weigh = Callable[[Position, Report], tuple[Position, Info, bool] | None]
PENDING = "pending"  # of the details: reports whose whole step is not done


class _Whole(NamedTuple):
    """Where whole steps have led, what came since, the errors of reports that were refused on the way, and whether the
    last one was."""

    replayed: Replayed
    ahead: tuple[Report, ...]
    errors: tuple[PfbrError, ...]
    refused: bool


class InTime:
    """The steps of one stream, each answered within `seconds` but for what the first weighing takes to compile."""

    def __init__(self, seconds: float, step: Step, weigh: Weigh, undo: int):
        self.seconds, self._step, self._weigh, self._undo = seconds, step, weigh, undo
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pfbr-in-time")
        self._lock = threading.Lock()
        self._last: Future[None] | None = None  # None: all is done
        self._reached: _Whole  # by the thread, while something is pending
        self._shown: Replayed | None = None  # the whole steps that provisional answers go on from

    def update(self, kept: Sequence[Kept], here: Position, report: Report) -> tuple[Replayed, PfbrError | None]:
        """One more report from `here`, which may be provisional; an error where it was refused in time, and where the
        reports before it lead."""
        until = time.monotonic() + self.seconds
        if self._last is None:
            weighed = self._weigh(here, report)
            if weighed is not None and weighed[2]:
                return Replayed([*kept, Kept(here, report)], *weighed[:2]), None
            self._shown = Replayed(list(kept), here, NOTHING)
            self._reached = _Whole(self._shown, (report,), (), False)
        else:
            here = self._nearest(here, until)
            weighed = self._weigh(here, report)
            with self._lock:
                self._reached = self._reached._replace(ahead=(*self._reached.ahead, report))
        self._last = self._thread.submit(self._next)
        try:
            self._last.result(max(until - time.monotonic(), 0.0))
        except TimeoutError:
            return self._provisional(kept, here, report, weighed), None
        return self._done(answered=False)

    def settled(self) -> Replayed | None:
        """Where all whole steps lead, waited for; None where nothing was pending."""
        if self._last is None:
            return None
        self._last.result()
        return self._done(answered=True)[0]

    @property
    def num_pending(self) -> int:
        return 0 if self._last is None else len(self._reached.ahead)

    def _next(self) -> None:
        """In the thread, where steps are made in their order: one more whole step."""
        begun = self._reached
        report, kept = begun.ahead[0], begun.replayed.kept
        errors, refused, replayed = begun.errors, False, begun.replayed
        try:
            replayed = replay(self._step, kept, replayed.end, [report])
            excess = max(len(replayed.kept) - self._undo, 0)
            replayed = replayed._replace(kept=replayed.kept[excess:])
        except PfbrError as error:
            errors, refused = (*errors, error), True
        with self._lock:
            self._reached = _Whole(replayed, self._reached.ahead[1:], errors, refused)

    def _nearest(self, here: Position, until: float) -> Position:
        """The reports that are not done yet weighed from the last whole step, where there is time to; else `here`."""
        reached = self._reached
        if reached.replayed is self._shown:
            return here
        position = reached.replayed.end
        for report in reached.ahead:
            weighed = self._weigh(position, report)
            position = _stayed(position, report) if weighed is None else weighed[0]
            if time.monotonic() > until:
                return here
        self._shown = reached.replayed
        return position

    def _provisional(
        self, kept: Sequence[Kept], here: Position, report: Report, weighed: tuple[Position, Info, bool] | None
    ) -> Replayed:
        end, info = (_stayed(here, report), NOTHING) if weighed is None else weighed[:2]
        details = {**info.details, PENDING: np.asarray(self.num_pending)}
        info = eqx.tree_at(
            lambda i: (i.flagged, i.details), info, (np.asarray(True), details), is_leaf=lambda leaf: leaf is None
        )
        return Replayed([*kept, Kept(here, report)], end, info)

    def _done(self, *, answered: bool) -> tuple[Replayed, PfbrError | None]:
        """Tell of reports that were refused after they had been answered."""
        whole, self._last = self._reached, None
        raised = whole.errors[-1] if whole.refused and not answered else None
        for error in whole.errors[:-1] if raised else whole.errors:
            warnings.warn(f"a report that had been answered in time was refused afterwards: {error}", stacklevel=4)
        return whole.replayed, raised


def _stayed(here: Position, report: Report) -> Position:
    """Where the weights of a report would be none: all stays as it is."""
    return Position(here.state, here.stage + 1, max(here.now, report.at), here.log_evidence)


def limited(max_ms: Any, step: Step, weigh: Weigh | None, *, undo: int, scores: bool) -> InTime:
    """What a session's `max_ms` asks for; refused where its method cannot weigh first."""
    if isinstance(max_ms, bool) or not isinstance(max_ms, int | float) or not 0 < max_ms < np.inf:
        raise InputError(f"`max_ms` must be a number of milliseconds above 0, or None for no limit; got {max_ms!r}.")
    if weigh is None:
        raise InputError('`max_ms` needs a method that can weigh first: leave `method` at "auto", or `max_ms` out.')
    if scores:
        raise InputError("`scores` take a forecast before every update: leave them out, or `max_ms`.")
    return InTime(float(max_ms) / 1e3, step, weigh, undo)
