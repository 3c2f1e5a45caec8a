"""A live stream: every line of JSON is answered by one, at once; a bad one changes nothing."""

import contextlib
import json
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np

from pfbr.cli.lines import Columns, parse_line
from pfbr.cli.posteriors import answer_of, arrays_of
from pfbr.errors import PfbrError
from pfbr.inference.posterior import Posterior
from pfbr.inference.session import Session
from pfbr.models.conditions import observation_shape


def answer(
    session: Session, lines: Iterable[str], answers: TextIO, *, columns: Columns = Columns(), keep: bool = False
) -> dict[str, np.ndarray] | None:
    """Answer until the lines end, Ctrl-C, or nobody reads the answers; with `keep`, all posteriors as for a file."""
    shape = observation_shape(session.model)
    kept: list[dict[str, np.ndarray]] = []
    if hasattr(lines, "reconfigure"):
        lines.reconfigure(errors="replace")  # bytes that are no text make a bad line, not an end
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        for number, text in enumerate(lines, start=1):
            if not text.strip():
                continue
            try:
                posterior, taken_back = _next(session, text, shape, f"line {number}", columns)
            except PfbrError as error:
                _say(answers, {"line": number, "error": str(error)})
                continue
            if keep and taken_back:
                kept.pop()
            elif keep:
                kept.append(arrays_of(posterior))
            _say(answers, answer_of(posterior, session.stage))
    if not kept:
        return None
    common = [name for name in kept[0] if all(name in stage for stage in kept)]
    return {name: np.stack([stage[name] for stage in kept]) for name in common}


def _next(
    session: Session, text: str, shape: tuple[int, ...] | None, where: str, columns: Columns
) -> tuple[Posterior, bool]:
    """The posterior after a line, and whether the line took the last observation back."""
    line = parse_line(text, shape, where, columns)
    if not line.retract:
        return session.update(line.observation, time=line.time, inputs=line.inputs), False
    return session.retract(line.observation, inputs=line.inputs), line.observation is None


def _say(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
