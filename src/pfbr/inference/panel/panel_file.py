"""A panel as bytes: the ids, where each stream stands, and their states with no room for rows that have not come."""

import dataclasses
import os
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import FileError, InputError
from pfbr.inference import saved_parts
from pfbr.inference.described import describe, rebuild
from pfbr.inference.fingerprint import Fingerprint
from pfbr.inference.method import Method, State
from pfbr.inference.panel.numbers import number_of
from pfbr.inference.panel.stores import Store, make_stores
from pfbr.inference.rows import Row
from pfbr.io import containers, sparse, trees
from pfbr.io.schema import TABLE, Kind, Optional, table_of, whole
from pfbr.models.base import Model
from pfbr.version import VERSION

STANDING = ("number", "stage", "store", "now", "log_evidence")  # of each stream
COUNTS = ("capacity", "num_particles", "numbers", "num_reports", "num_moved")
FIELDS: dict[str, Kind | Optional] = {
    "counts": table_of(whole()),
    "streams": TABLE,
    "from_first": saved_parts.TRUTH,
    "by_id": Optional(saved_parts.TRUTH),
}


@dataclasses.dataclass
class SavedPanel:
    """All that a panel holds but for its model. `states` has one entry a store, of its streams in order."""

    method: Method
    key: jax.Array
    counts: dict[str, int]
    start: Any  # of the clock; None: no time has been told yet
    time_unit: str | None
    from_first: bool
    by_id: bool
    streams: list[Hashable]
    standing: dict[str, np.ndarray]
    example: Row | None
    states: list[State]
    fingerprint: Fingerprint


def to_bytes(saved: SavedPanel, model: Model) -> bytes:
    arrays: dict[str, np.ndarray] = {}
    try:
        streams = trees.described(list(saved.streams), "streams", arrays)
    except InputError as error:
        raise InputError(f"an id cannot be kept in a file; texts, numbers and tuples of these can ({error})") from None
    header = {
        "layout": saved_parts.LAYOUT,
        "pfbr": VERSION,
        "jax": jax.__version__,
        "precision": str(jnp.result_type(float)),
        "model": type(model).__name__,
        "method": describe(saved.method, arrays),
        "key": saved_parts.described_key(saved.key, arrays),
        "counts": saved.counts,
        "start": None if saved.start is None else saved_parts.described_moment(saved.start),
        "time_unit": saved.time_unit,
        "from_first": saved.from_first,
        "by_id": saved.by_id,
        "streams": streams,
        "example": saved_parts.described_row(saved.example, "example", arrays),
        "fingerprint": saved_parts.described_fingerprint(saved.fingerprint, arrays),
    }
    for name in STANDING:
        arrays[f"standing.{name}"] = saved.standing[name]
    for number, state in enumerate(saved.states):
        arrays |= {f"states[{number}]{name}": leaf for name, leaf in sparse.packed(_flat(state)).items()}
    return containers.to_bytes("panel", header, arrays)


def read(path: str | os.PathLike, model: Model) -> tuple[SavedPanel, list[Store]]:
    return _saved(*containers.read(path, "panel"), model, str(path))


def from_bytes(content: bytes, model: Model, source: str = "this panel") -> tuple[SavedPanel, list[Store]]:
    """What `to_bytes` wrote, and stores to put the states into."""
    return _saved(*containers.from_bytes(bytes(content), "panel", source), model, source)


def _saved(header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str):
    return saved_parts.checked(header, FIELDS, source, lambda: _read(header, arrays, model, source))


def _read(header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str):
    fingerprint = saved_parts.rebuilt_fingerprint(header["fingerprint"], arrays, source)
    saved_parts.check_model(model, fingerprint, header["model"], source)
    method = rebuild(header["method"], arrays, source)
    counts = {name: header["counts"][name] for name in COUNTS}
    example = saved_parts.rebuilt_row(header["example"], arrays, source)
    streams = trees.rebuilt(header["streams"], arrays, source)
    standing = {name: arrays[f"standing.{name}"] for name in STANDING}
    _check_streams(streams, standing, counts, header.get("by_id", False), source)
    stores = [] if example is None else make_stores(method, model, counts["num_particles"], example, counts["capacity"])
    if (standing["store"] >= max(len(stores), 1)).any():
        raise FileError(f"{source} holds streams in a store that it does not have. Make it again.")
    states = []
    for number, store in enumerate(stores):
        here = int(np.sum(standing["store"] == number))
        prefix = f"states[{number}]"
        own = {name.removeprefix(prefix): leaf for name, leaf in arrays.items() if name.startswith(prefix)}
        states.append(_whole(store.skeleton, own, here, header, source))
        if here:
            saved_parts.check_particles(jax.vmap(method.particles)(states[-1].own), source)
    saved = SavedPanel(
        method,
        saved_parts.rebuilt_key(header["key"], arrays),
        counts,
        None if header["start"] is None else saved_parts.rebuilt_moment(header["start"]),
        header["time_unit"],
        header["from_first"],
        header.get("by_id", False),  # files of before have none
        streams,
        standing,
        example,
        states,
        fingerprint,
    )
    return saved, stores


def _check_streams(
    streams: Any, standing: dict[str, np.ndarray], counts: dict[str, int], by_id: bool, source: str
) -> None:
    """Refuse ids that are none or come twice, and streams that stand where none can."""
    known = isinstance(streams, list) and all(isinstance(name, Hashable) for name in streams)
    if not known or len(set(streams)) != len(streams) or len(streams) > counts["capacity"]:
        raise FileError(f"{source} holds streams whose ids are none, or come twice. Make it again.")
    if any(numbers.shape != (len(streams),) for numbers in standing.values()):
        raise FileError(f"{source} holds {len(streams)} streams and does not say where each stands. Make it again.")
    for name in ("now", "log_evidence"):
        saved_parts.check_numbers(standing[name], f"`{name}` of streams", source)
    for name in ("number", "stage", "store"):
        saved_parts.check_numbers(standing[name], f"`{name}` of streams", source, whole_from=0)
    if by_id:
        apart = all(number_of(name) == number for name, number in zip(streams, standing["number"], strict=True))
    else:
        fresh = len(np.unique(standing["number"])) == len(streams)
        apart = fresh and bool((standing["number"] < counts["numbers"]).all())
    if not apart:
        raise FileError(f"{source} holds streams whose numbers cannot be told apart. Make it again.")


def _flat(state: State) -> dict[str, np.ndarray]:
    """Leaves by name, streams and rows in one axis, so that rows that have not come are left out."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    named = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
    return {n: leaf.reshape(-1, *leaf.shape[2:]) if leaf.ndim > 1 else leaf for n, leaf in named.items()}


def _whole(skeleton: State, kept: dict[str, np.ndarray], number: int, header: dict[str, Any], source: str) -> State:
    """States of `number` streams out of what `_flat` and `packed` left of them."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(skeleton)
    shapes = {jax.tree_util.keystr(path): (number, *leaf.shape) for path, leaf in leaves}
    flat = {n: (s[0] * s[1], *s[2:]) if len(s) > 1 else s for n, s in shapes.items()}
    found = sparse.unpacked(kept, flat, source)
    if {n: leaf.shape for n, leaf in found.items()} != flat:
        differ = sorted(n for n in flat.keys() | found.keys() if n not in found or flat.get(n) != found[n].shape)
        raise FileError(
            f"{source} was saved by pfbr {header['pfbr']}, whose {header['method']['kind']} keeps other arrays than "
            f"that of this one ({VERSION}): {', '.join(differ[:3])}. Go on with that version, or begin again."
        )
    return jax.tree.unflatten(structure, [found[name].reshape(shape) for name, shape in shapes.items()])
