"""What a training run says while it runs."""

import sys
from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """One report. `score` is the last validation: nats above exact sampling, or the loss where no truth is known."""

    step: int
    fraction: float  # of the budget that is used up
    loss: float
    score: float
    best_score: float
    against_exact: bool
    seconds: float
    seconds_left: float
    skipped: int


def describe(report: Progress) -> str:
    """The report as one line."""
    what = "above exact" if report.against_exact else "held-out loss"
    skipped = f"  skipped {report.skipped}" if report.skipped else ""
    return (
        f"step {report.step}  loss {report.loss:.3f}  {what} {report.score:+.3f} (best {report.best_score:+.3f})"
        f"  {_clock(report.seconds_left)} left{skipped}"
    )


def text_bar(stream=None) -> Callable[[Progress], None]:
    """A bar on one line of the terminal; where there is no terminal, a line every tenth of the budget."""
    stream = stream or sys.stderr
    said = -1

    def show(report: Progress) -> None:
        nonlocal said
        if stream.isatty():
            filled = int(24 * min(report.fraction, 1.0))
            end = "\n" if report.fraction >= 1 else ""
            stream.write(f"\r\x1b[K{'█' * filled}{'░' * (24 - filled)} {describe(report)}{end}")
            stream.flush()
        elif int(10 * report.fraction) > said:
            said = int(10 * report.fraction)
            stream.write(describe(report) + "\n")
            stream.flush()

    return show


def _clock(seconds: float) -> str:
    if seconds == float("inf"):
        return "?"
    minutes, seconds = divmod(max(round(seconds), 0), 60)  # a step may end after the time is up
    return f"{minutes}:{seconds:02d}"
