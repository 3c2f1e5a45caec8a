"""Where a training run stands, and that on disk: a kill at any moment loses at most one interval."""

import contextlib
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh

from pfbr.checks import shortened
from pfbr.errors import FileError
from pfbr.inference.operator import Operator
from pfbr.io import containers
from pfbr.io.schema import Kind, Optional, check_table, listing, maybe, number, table_of, whole
from pfbr.sharding import from_first, leads, several_processes

_NUMBERS = table_of(maybe(number()))
_VALIDATION = Kind("a table with `step` and `score`", lambda v: _NUMBERS.holds(v) and {"step", "score"} <= v.keys())
PROGRESS: dict[str, Kind | Optional] = {
    "step": whole(),
    "seconds": number(0.0),
    "best_score": maybe(number()),
    "skipped": whole(),
    "history": listing(_VALIDATION),
}


class TrainingState(NamedTuple):
    """All that the next step depends on, the best operator so far, and what happened until now."""

    operator: Operator
    optimiser: Any
    best: Operator
    step: int
    seconds: float
    best_score: float
    skipped: int
    history: list[dict]


def write_state(path: str | os.PathLike, state: TrainingState, identity: dict) -> None:
    """`identity` says which run this is: architecture, settings and key."""
    header = dict(
        identity,
        step=state.step,
        seconds=state.seconds,
        best_score=state.best_score,
        skipped=state.skipped,
        history=state.history,
    )
    containers.write(path, "checkpoint", header, containers.named_leaves((state.operator, state.optimiser, state.best)))


def read_state(
    path: str | os.PathLike, fresh: TrainingState, identity: dict, mesh: Mesh | None = None
) -> TrainingState:
    """The state in a checkpoint of the same run as `fresh`; another run's checkpoint is refused.

    With several processes, however many wrote it, the first one reads it for all.
    """
    header, arrays = _first_reads(path, mesh) if several_processes(mesh) else containers.read(path, "checkpoint")
    for name, value in identity.items():
        if header.get(name) != value:
            raise FileError(
                f"{path} is the checkpoint of a run with another {name}: {shortened(header.get(name))} there, "
                f"{shortened(value)} here. "
                "Resume with the same model, settings and seed, or start anew with another file."
            )
    check_table(header, PROGRESS, str(path))
    trees = (fresh.operator, fresh.optimiser, fresh.best)
    operator, optimiser, best = containers.filled(trees, arrays, path)
    return TrainingState(
        operator,
        optimiser,
        best,
        header["step"],
        header["seconds"],
        math.inf if header["best_score"] is None else header["best_score"],
        header["skipped"],
        [{name: math.nan if value is None else value for name, value in entry.items()} for entry in header["history"]],
    )


def _first_reads(path: str | os.PathLike, mesh: Mesh | None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is in the file, for all processes; whatever is wrong with it is then said by all, and none waits."""
    content = b""
    if leads(mesh):
        with contextlib.suppress(OSError):
            content = Path(path).read_bytes()
    length = int(from_first(mesh, np.asarray(len(content))))
    own = np.frombuffer(content, np.uint8) if leads(mesh) else np.zeros(length, np.uint8)
    if length == 0:
        raise FileError(f"the first process cannot read {path}: check the path, or start without `resume`.")
    return containers.from_bytes(from_first(mesh, own).tobytes(), "checkpoint", str(path))
