"""A panel as bytes: the ids, where each stream stands, and their states with no room for rows that have not come."""

import dataclasses
import os
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import FileError, InputError, PfbrError
from pfbr.inference import session_file
from pfbr.inference.described import describe, rebuild
from pfbr.inference.fingerprint import Fingerprint
from pfbr.inference.method import Method, State
from pfbr.inference.panel.stores import Store, make_stores
from pfbr.inference.rows import Row
from pfbr.io import containers, sparse, trees
from pfbr.models.base import Model
from pfbr.version import VERSION

STANDING = ("number", "stage", "store", "now", "log_evidence")  # of each stream
COUNTS = ("capacity", "num_particles", "numbers", "num_reports", "num_moved")


@dataclasses.dataclass
class SavedPanel:
    """All that a panel holds but for its model. `states` has one entry a store, of its streams in order."""

    method: Method
    key: jax.Array
    counts: dict[str, int]
    start: Any  # of the clock; None: no time has been told yet
    time_unit: str | None
    from_first: bool
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
        "layout": session_file.LAYOUT,
        "pfbr": VERSION,
        "jax": jax.__version__,
        "precision": str(jnp.result_type(float)),
        "model": type(model).__name__,
        "method": describe(saved.method, arrays),
        "key": session_file.described_key(saved.key, arrays),
        "counts": saved.counts,
        "start": None if saved.start is None else session_file.described_moment(saved.start),
        "time_unit": saved.time_unit,
        "from_first": saved.from_first,
        "streams": streams,
        "example": session_file.described_row(saved.example, "example", arrays),
        "fingerprint": session_file.described_fingerprint(saved.fingerprint, arrays),
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
    session_file.check_origin(header, source)
    try:
        return _read(header, arrays, model, source)
    except PfbrError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{source} was saved by pfbr {header.get('pfbr')} in a way that this one ({VERSION}) cannot read "
            f"({type(error).__name__}: {error}). Go on with that version, or begin again."
        ) from None


def _read(header: dict[str, Any], arrays: dict[str, np.ndarray], model: Model, source: str):
    fingerprint = session_file.rebuilt_fingerprint(header["fingerprint"], arrays, source)
    session_file.check_model(model, fingerprint, header["model"], source)
    method = rebuild(header["method"], arrays, source)
    counts = {name: int(header["counts"][name]) for name in COUNTS}
    example = session_file.rebuilt_row(header["example"], arrays, source)
    standing = {name: arrays[f"standing.{name}"] for name in STANDING}
    stores = [] if example is None else make_stores(method, model, counts["num_particles"], example, counts["capacity"])
    states = []
    for number, store in enumerate(stores):
        here = int(np.sum(standing["store"] == number))
        prefix = f"states[{number}]"
        own = {name.removeprefix(prefix): leaf for name, leaf in arrays.items() if name.startswith(prefix)}
        states.append(_whole(store.skeleton, own, here, header, source))
    saved = SavedPanel(
        method,
        session_file.rebuilt_key(header["key"], arrays),
        counts,
        None if header["start"] is None else session_file.rebuilt_moment(header["start"]),
        header["time_unit"],
        bool(header["from_first"]),
        trees.rebuilt(header["streams"], arrays, source),
        standing,
        example,
        states,
        fingerprint,
    )
    return saved, stores


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
