"""A session as bytes: what it holds by name, how its method was made, and what tells its model from others.

Nothing in a file is run: arrays have names, settings are JSON, classes are found by what this pfbr knows. The model is
not inside; whoever restores brings it, and its densities are compared with those that were kept.
"""

import dataclasses
import os
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import FileError, InputError, PfbrError
from pfbr.inference.described import describe, rebuild
from pfbr.inference.fingerprint import Fingerprint, differences
from pfbr.inference.method import Method, State, start
from pfbr.inference.replay import Kept, Position, Report
from pfbr.inference.rows import Row
from pfbr.io import containers, sparse, trees
from pfbr.models.base import Model
from pfbr.version import VERSION

LAYOUT = 1  # of what stands in a file; a change that older files cannot be read with gets the next number
ROW = ("observation", "observed", "dt", "inputs")
PRINT = ("points", "params", "observations", "values")


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
    return _saved(*containers.read(path, "session"), model, str(path))


def from_bytes(content: bytes, model: Model, source: str = "this session") -> SavedSession:
    """What `to_bytes` wrote; an error says what differs where the model is another one."""
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InputError(f"a session is restored from bytes, as `to_bytes()` gives them; got {type(content).__name__}.")
    return _saved(*containers.from_bytes(bytes(content), "session", source), model, source)


def _saved(header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str) -> SavedSession:
    check_origin(header, source)
    try:
        return _read(header, arrays, model, source)
    except PfbrError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{source} was saved by pfbr {header.get('pfbr')} in a way that this one ({VERSION}) cannot read "
            f"({type(error).__name__}: {error}). Go on with that version, or begin again."
        ) from None


def _read(header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str) -> SavedSession:
    fingerprint = rebuilt_fingerprint(header["fingerprint"], arrays, source)
    check_model(model, fingerprint, header["model"], source)
    method = rebuild(header["method"], arrays, source)
    key = rebuilt_key(header["key"], arrays)
    example = rebuilt_row(header["example"], arrays, source)
    num_particles, stages = int(header["num_particles"]), header["stages"]
    reports = [rebuilt_report(one, arrays, source) for one in header["reports"]]
    moments = []
    if example is not None and stages:
        skeleton = state_skeleton(method, model, num_particles, example)
        shapes = {name: leaf.shape for name, leaf in _named_shapes(skeleton).items()}
        current = sparse.unpacked(_without("state", arrays), shapes, source)
        kept = [
            sparse.unpacked(_without(f"past[{i}]", arrays), shapes, source, current) for i in range(len(stages) - 1)
        ]
        for leaves, stage, now, gained in zip(
            [*kept, current], stages, arrays["now"], arrays["log_evidence"], strict=True
        ):
            state = filled_state(skeleton, leaves, header, source)
            moments.append(Position(state, int(stage), float(now), float(gained)))
    return SavedSession(
        method,
        key,
        num_particles,
        int(header["undo"]),
        rebuilt_moment(header["start"]),
        header["time_unit"],
        example,
        moments[-1] if moments else None,
        [Kept(*one) for one in zip(moments[:-1], reports, strict=True)],
        fingerprint,
        bool(header["scores"]),
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


def check_origin(header: dict[str, Any], source: str) -> None:
    """Refuse what this pfbr, or this precision, cannot go on with."""
    if header.get("layout") != LAYOUT:
        raise FileError(
            f"{source} was saved by pfbr {header.get('pfbr')} in layout {header.get('layout')}; this one ({VERSION}) "
            f"reads layout {LAYOUT}. Go on with that version."
        )
    precision = str(jnp.result_type(float))
    if header.get("precision") != precision:
        raise FileError(
            f"{source} was saved in {header.get('precision')}, and this process computes in {precision}: set JAX's "
            "`jax_enable_x64` as it was."
        )


def check_model(model: Model, fingerprint: Fingerprint, name: str, source: str) -> None:
    """Refuse another model than the one that was saved with, and say what differs."""
    found = differences(model, fingerprint)
    if found:
        raise InputError(
            f"`model` is not the one that {source} was saved with (a {name}): {'; '.join(found[:3])}. Restore with "
            "that model, or begin a new session with this one."
        )


def state_skeleton(method: Method, model: Model, num_particles: int, example: Row) -> State:
    """The structure of a state, with shapes in place of arrays."""
    conditions = jax.tree.map(jnp.asarray, example.conditions(model))
    begin = lambda key: start(key, method, model, num_particles, conditions, np.shape(example.observation))
    return eqx.filter_eval_shape(begin, jax.random.key(0))


def filled_state(skeleton: State, leaves: dict[str, np.ndarray], header: dict[str, Any], source: str) -> State:
    wanted = {name: (leaf.shape, leaf.dtype.kind) for name, leaf in _named_shapes(skeleton).items()}
    found = {name: (leaf.shape, leaf.dtype.kind) for name, leaf in leaves.items()}
    if wanted != found:
        differ = sorted(n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n))
        raise FileError(
            f"{source} was saved by pfbr {header['pfbr']}, whose {header['method']['kind']} keeps other arrays than "
            f"that of this one ({VERSION}): {', '.join(differ[:3])}. Go on with that version, or begin again."
        )
    return containers.filled(skeleton, leaves, source)


def described_key(key: jax.Array, arrays: dict[str, np.ndarray]) -> str | None:
    """The name of its generator; None for a key of JAX's old style."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    arrays["key"] = np.asarray(jax.random.key_data(key) if typed else key)
    return str(jax.random.key_impl(key)) if typed else None


def rebuilt_key(generator: str | None, arrays: dict[str, np.ndarray]) -> jax.Array:
    data = jnp.asarray(arrays["key"])
    return data if generator is None else jax.random.wrap_key_data(data, impl=generator)


def described_moment(time: Any) -> Any:
    """A time as JSON: a number, or a date in words."""
    return time if isinstance(time, float) else {"date": str(time)}


def rebuilt_moment(document: Any) -> Any:
    return np.datetime64(document["date"], "us") if isinstance(document, dict) else float(document)


def described_fingerprint(fingerprint: Fingerprint, arrays: dict[str, np.ndarray]) -> Any:
    parts = {name: trees.described(getattr(fingerprint, name), f"fingerprint.{name}", arrays) for name in PRINT}
    return parts | {"row": described_row(fingerprint.row, "fingerprint.row", arrays)}


def rebuilt_fingerprint(document: Any, arrays: dict[str, np.ndarray], source: str) -> Fingerprint:
    parts = {name: jax.tree.map(jnp.asarray, trees.rebuilt(document[name], arrays, source)) for name in PRINT}
    return Fingerprint(row=rebuilt_row(document["row"], arrays, source), **parts)


def described_row(row: Row | None, name: str, arrays: dict[str, np.ndarray]) -> Any:
    if row is None:
        return None
    return {field: trees.described(getattr(row, field), f"{name}.{field}", arrays) for field in ROW}


def rebuilt_row(document: Any, arrays: dict[str, np.ndarray], source: str) -> Row | None:
    if document is None:
        return None
    return Row(**{field: trees.rebuilt(document[field], arrays, source) for field in ROW})


def _named_shapes(skeleton: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(skeleton)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves if hasattr(leaf, "shape")}


def _prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {prefix + name: array for name, array in arrays.items()}


def _without(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix + ".")}
