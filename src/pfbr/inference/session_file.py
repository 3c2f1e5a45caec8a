"""A session as bytes: what it holds by name, how its method was made, and what tells its model from others.

Nothing in a file is run: arrays have names, settings are JSON, classes are found by what this pfbr knows. The model is
not inside; whoever restores brings it, and its densities are compared with those that were kept.
"""

import dataclasses
import json
import os
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.described import describe, rebuild
from pfbr.inference.fingerprint import Fingerprint
from pfbr.inference.method import Method, State
from pfbr.inference.replay import Kept, Position, Report
from pfbr.inference.rows import Row
from pfbr.inference.saved_parts import (
    LAYOUT,
    TRUTH,
    check_model,
    check_numbers,
    check_particles,
    checked,
    described_fingerprint,
    described_key,
    described_moment,
    described_row,
    filled_state,
    named_shapes,
    rebuilt_fingerprint,
    rebuilt_key,
    rebuilt_moment,
    rebuilt_row,
    state_skeleton,
)
from pfbr.io import containers, sparse
from pfbr.io.schema import TABLE, Kind, Optional, listing, maybe, whole
from pfbr.models.base import Model
from pfbr.version import VERSION

FIELDS: dict[str, Kind | Optional] = {
    "num_particles": whole(),
    "undo": whole(),
    "stages": Kind("a list of counts in order", lambda v: listing(whole()).holds(v) and v == sorted(v)),
    "reports": listing(maybe(TABLE)),
    "scores": TRUTH,
}


@dataclasses.dataclass
class SavedSession:
    """All that a session holds but for its model; `current` is None before the first observation."""

    method: Method
    key: jax.Array
    num_particles: int
    undo: int
    start: Any
    time_unit: str | None
    example: Row | None  # the row that the state was made for
    current: Position | None
    past: list[Kept]
    fingerprint: Fingerprint
    scores: bool = False


@dataclasses.dataclass(frozen=True)
class Shared:
    """What the files of all streams of one model and method have in common, once it has been looked at."""

    fingerprint: Fingerprint
    method: Method
    example: Row | None
    skeleton: State | None


Seen = dict[bytes, Shared]  # by how it stands in a file; of one model
MOST_SEEN = 64


def to_bytes(saved: SavedSession, model: Model) -> bytes:
    arrays: dict[str, np.ndarray] = {}
    moments = [*(kept.before for kept in saved.past), *([] if saved.current is None else [saved.current])]
    header = {
        "layout": LAYOUT,
        "pfbr": VERSION,
        "jax": jax.__version__,
        "precision": str(jnp.result_type(float)),
        "model": type(model).__name__,
        "method": describe(saved.method, arrays),
        "key": described_key(saved.key, arrays),
        "num_particles": saved.num_particles,
        "undo": saved.undo,
        "start": described_moment(saved.start),
        "time_unit": saved.time_unit,
        "scores": saved.scores,
        "stages": [moment.stage for moment in moments],
        "reports": [described_report(kept.report, f"report[{i}]", arrays) for i, kept in enumerate(saved.past)],
        "example": described_row(saved.example, "example", arrays),
        "fingerprint": described_fingerprint(saved.fingerprint, arrays),
    }
    arrays["now"] = np.asarray([moment.now for moment in moments], np.float64)
    arrays["log_evidence"] = np.asarray([moment.log_evidence for moment in moments], np.float64)
    if saved.current is not None:
        current = containers.named_leaves(saved.current.state)
        arrays |= _prefixed("state", sparse.packed(current))
        for number, moment in enumerate(moments[:-1]):  # they share most of what they keep with the current one
            arrays |= _prefixed(f"past[{number}]", sparse.packed(containers.named_leaves(moment.state), current))
    return containers.to_bytes("session", header, arrays)


def read(path: str | os.PathLike, model: Model) -> SavedSession:
    return _saved(*containers.read(path, "session"), model, str(path), {})


def from_bytes(content: bytes, model: Model, source: str = "this session", seen: Seen | None = None) -> SavedSession:
    """What `to_bytes` wrote; an error says what differs where the model is another one. Whoever opens very many gives
    `seen`, in which what they share is kept, so that it is looked at once."""
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InputError(f"a session is restored from bytes, as `to_bytes()` gives them; got {type(content).__name__}.")
    opened = containers.from_bytes(bytes(content), "session", source)
    return _saved(*opened, model, source, {} if seen is None else seen)


def _saved(
    header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str, seen: Seen
) -> SavedSession:
    return checked(header, FIELDS, source, lambda: _read(header, arrays, model, source, seen))


def _shared(header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str, seen: Seen) -> Shared:
    own = ("state", "past[", "report[", "key", "now", "log_evidence")  # all else is of the method and the model
    words = {name: header[name] for name in ("fingerprint", "method", "example", "num_particles", "model")}
    numbers = [(n, a.dtype.str, a.shape, a.tobytes()) for n, a in sorted(arrays.items()) if not n.startswith(own)]
    place = json.dumps(words, sort_keys=True).encode() + repr(numbers).encode()
    if place not in seen:
        fingerprint = rebuilt_fingerprint(header["fingerprint"], arrays, source)
        check_model(model, fingerprint, header["model"], source)
        method = rebuild(header["method"], arrays, source)
        example = rebuilt_row(header["example"], arrays, source)
        skeleton = None
        if example is not None:
            skeleton = state_skeleton(method, model, header["num_particles"], example)
        if len(seen) >= MOST_SEEN:
            seen.clear()
        seen[place] = Shared(fingerprint, method, example, skeleton)
    return seen[place]


def _read(header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str, seen: Seen) -> SavedSession:
    shared = _shared(header, arrays, model, source, seen)
    method, example, skeleton = shared.method, shared.example, shared.skeleton
    key = rebuilt_key(header["key"], arrays)
    num_particles, stages = header["num_particles"], header["stages"]
    reports = [rebuilt_report(one, arrays, source) for one in header["reports"]]
    check_numbers(arrays["now"], "times", source)
    check_numbers(arrays["log_evidence"], "sums of evidence", source)
    moments = []
    if skeleton is not None and stages:
        shapes = {name: leaf.shape for name, leaf in named_shapes(skeleton).items()}
        current = sparse.unpacked(_without("state", arrays), shapes, source)
        kept = [
            sparse.unpacked(_without(f"past[{i}]", arrays), shapes, source, current) for i in range(len(stages) - 1)
        ]
        for leaves, stage, now, gained in zip(
            [*kept, current], stages, arrays["now"], arrays["log_evidence"], strict=True
        ):
            state = filled_state(skeleton, leaves, header, source)
            check_particles(method.particles(state.own), source)
            moments.append(Position(state, int(stage), float(now), float(gained)))
    return SavedSession(
        method,
        key,
        num_particles,
        header["undo"],
        rebuilt_moment(header["start"]),
        header["time_unit"],
        example,
        moments[-1] if moments else None,
        [Kept(*one) for one in zip(moments[:-1], reports, strict=True)],
        shared.fingerprint,
        header["scores"],
    )


def described_report(report: Report | None, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """A report that can still be changed; its time in JSON has all its digits."""
    if report is None:
        return None
    return {"row": described_row(report.row, name, arrays), "at": report.at, "timed": report.timed}


def rebuilt_report(document: Any, arrays: dict[str, np.ndarray], source: str) -> Report | None:
    if document is None:
        return None
    row = rebuilt_row(document["row"], arrays, source)
    assert row is not None  # a report has one
    return Report(row, float(document["at"]), bool(document["timed"]))


def _prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {prefix + name: array for name, array in arrays.items()}


def _without(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix + ".")}
