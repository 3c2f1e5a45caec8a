"""A live stream: every line of JSON is answered by one, at once; a bad one changes nothing."""

import contextlib
import json
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np

from pfbr.cli.desk import Desk, error_answer
from pfbr.cli.durable import DurableDesk
from pfbr.cli.lines import Line
from pfbr.cli.posteriors import arrays_of
from pfbr.errors import FileError, PfbrError
from pfbr.inference.posterior import Posterior


def answer(
    desk: Desk | DurableDesk, lines: Iterable[str], answers: TextIO, *, keep: bool = False
) -> dict[str, np.ndarray] | None:
    """Answer until the lines end, Ctrl-C, or nobody reads the answers; with `keep`, all posteriors as for a file."""
    kept: list[dict[str, np.ndarray]] = []

    def keep_posterior(posterior: Posterior, line: Line) -> None:
        if not keep:
            return
        if line.retract and line.observation is None and line.number is None and line.time is None:
            del kept[-1:]
        else:
            kept.append(arrays_of(posterior))

    if hasattr(lines, "reconfigure"):
        lines.reconfigure(errors="replace")  # bytes that are no text make a bad line, not an end
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        for number, text in enumerate(lines, start=1):
            if not text.strip():
                continue
            try:
                said, _ = desk.respond(text, f"line {number}", keep_posterior)
            except FileError:  # no line is bad in this way: the state cannot be kept, and nothing may be answered
                raise
            except PfbrError as error:
                said = error_answer(number, error)
            _say(answers, said)
    if not kept:
        return None
    common = [name for name in kept[0] if all(name in stage for stage in kept)]
    return {name: np.stack([stage[name] for stage in kept]) for name in common}


def _say(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
