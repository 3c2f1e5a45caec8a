"""The last reports of a stream, kept so that one can be put in, taken out or changed in its place.

A replayed step has the key of its place, `fold_in(key, m)` for the m-th report in the order of time. So a stream whose
reports came late, or were corrected, ends with the particles of one whose reports came right and in order.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from pfbr.errors import InputError
from pfbr.inference.info import Info
from pfbr.inference.method import State
from pfbr.inference.rows import Row


class Report(NamedTuple):
    """What came, and when: elapsed since the start. `timed`: whether the user said so, or one unit had to pass."""

    row: Row
    at: float
    timed: bool


class Position(NamedTuple):
    """Where a stream stands: the particles, how many reports made them, the last one's time, their log evidence."""

    state: State
    stage: int
    now: float
    log_evidence: float


class Kept(NamedTuple):
    """A report that can still be changed, and everything as it was before it. None: an observation was taken back by
    its value, which is no report."""

    before: Position
    report: Report | None

    @property
    def number(self) -> int:
        return self.before.stage + 1


class Replayed(NamedTuple):
    """What is kept now, where the stream stands, and what the last step said."""

    kept: list[Kept]
    end: Position
    info: Info


NOTHING = Info()  # what is said where no step was made
Step = Callable[[Position, Report], tuple[Position, Info]]


def replay(step: Step, kept: Sequence[Kept], begin: Position, reports: Iterable[Report]) -> Replayed:
    """The reports one after another from `begin`, behind those in `kept`. Pure: an error leaves all as it was."""
    after, here, info = list(kept), begin, NOTHING
    for report in reports:
        moved, info = step(here, report)
        after.append(Kept(here, report))
        here = moved
    return Replayed(after, here, info)


def with_late(step: Step, kept: Sequence[Kept], late: Report, *, undo: int, told: Callable[[float], Any]) -> Replayed:
    """A report of an earlier time put in its place, behind those of the same instant; later ones are replayed."""
    if not kept or late.at < kept[0].before.now:
        when = told(late.at)
        if kept and kept[0].before.stage == 0:
            raise InputError(f"`time` {when} lies before the `start` of this session, {told(0.0)}: the prior's time.")
        back = f"{len(kept)} of its reports, back to {told(kept[0].before.now)}" if kept else "none of its reports"
        raise InputError(
            f"`time` {when} lies before the last observation's, and this session has kept {back}, to put late ones in "
            f"their place. Make it with a larger `undo` (now {undo})."
        )
    place = next(i for i, one in enumerate(kept) if one.report is None or one.report.at > late.at)
    return replay(step, kept[:place], kept[place].before, [late, *_reports(kept[place:])])


def without(step: Step, kept: Sequence[Kept], place: int) -> Replayed:
    """The report at this place taken out; those after it are replayed."""
    return replay(step, kept[:place], kept[place].before, _reports(kept[place + 1 :]))


def with_other(step: Step, kept: Sequence[Kept], place: int, other: Row) -> Replayed:
    """Another row in the place of a report's, at the same time; it and those after it are replayed."""
    old = kept[place].report
    assert old is not None  # `find` gives reports only
    changed = Report(other, old.at, old.timed)
    return replay(step, kept[:place], kept[place].before, [changed, *_reports(kept[place + 1 :])])


def find(kept: Sequence[Kept], *, number: Any, at: float | None, stage: int, undo: int) -> int:
    """The place of a report in what is kept, by its number or by its time; without both, the last one."""
    if number is not None and at is not None:
        raise InputError("name the report by its `number` or by its `time`, not by both.")
    if not kept:
        why = f"the {undo} reports that it keeps are used up. Make it with a larger `undo`"
        if stage == 0:
            why = "there has been no observation yet; update it first"
        raise InputError(f"this session has nothing to retract or replace: {why}.")
    if number is None and at is None:
        place = len(kept) - 1
        _reports(kept[place:])
        return place
    named = f"number {number}" if at is None else "that time"
    if number is not None:
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= stage:
            raise InputError(f"`number` must be that of a report, from 1 to {stage}; got {number!r}.")
        found = [i for i, one in enumerate(kept) if one.report is not None and one.number == number]
    else:
        found = [i for i, one in enumerate(kept) if one.report is not None and one.report.at == at]
    if len(found) > 1:
        numbers = ", ".join(str(kept[i].number) for i in found)
        raise InputError(f"the reports {numbers} have {named}: say which by `number=`.")
    if not found:
        raise InputError(
            f"no report with {named} is kept: this session can change the last {len(kept)}, numbers {kept[0].number} "
            f"to {stage}. For earlier ones make it with a larger `undo` (now {undo})."
        )
    _reports(kept[found[0] :])
    return found[0]


def _reports(kept: Sequence[Kept]) -> list[Report]:
    reports = [one.report for one in kept if one.report is not None]
    if len(reports) < len(kept):
        raise InputError(
            "an observation has been taken back by its value since then, which cannot be replayed: call `retract()` "
            "until that is undone."
        )
    return reports
