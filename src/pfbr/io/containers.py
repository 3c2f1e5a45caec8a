"""One file for named arrays and how they were made: a line with a checksum, a line of JSON, then the numbers."""

import hashlib
import json
import os
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.checks import shortened
from pfbr.errors import FileError, InputError
from pfbr.io.files import strict, write_bytes
from pfbr.io.json_text import parse_table, read_bytes

FORMAT = 2
LARGEST = 2**31  # bytes of a file that is read
MOST_ARRAYS = 100_000  # in one file
_DTYPES = {"float32", "float64", "int32", "int64", "uint8", "uint32", "bool"}
_WHERE_FROM = {
    "operator": "An operator is what `pfbr train --out` or pfbr.save writes.",
    "checkpoint": "A checkpoint is what training writes while it runs; `resume` goes on from it.",
    "session": "A session is what Session.save writes.",
    "panel": "A panel is what Panel.save writes.",
    "problems": "Problems are what training for any model writes before it begins.",
    "live": "It is what `pfbr infer SPEC - --state FILE` writes.",
}
_MADE_BY = {
    "operator": "`pfbr train SPEC --out FILE` makes one",
    "checkpoint": "start without `resume` to make one",
    "problems": "training for any model makes them first",
    "session": "`session.save(path)` makes one",
    "panel": "`panel.save(path)` makes one",
}


def to_bytes(kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    arrays = {name: np.asarray(a) for name, a in arrays.items()}
    for name, a in arrays.items():
        if str(a.dtype) not in _DTYPES:
            raise InputError(f"`{name}` holds numbers of type {a.dtype}, which no pfbr file can hold.")
    listed = [{"name": name, "shape": list(a.shape), "dtype": str(a.dtype)} for name, a in arrays.items()]
    document = json.dumps(strict(dict(header, arrays=listed)), allow_nan=False).encode()
    body = document + b"\n" + b"".join(a.tobytes() for a in arrays.values())
    return f"pfbr-{kind} {FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def write(path: str | os.PathLike, kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write header and arrays so that a kill at any moment leaves either the old file or the new one."""
    write_bytes(path, to_bytes(kind, header, arrays))


def read(path: str | os.PathLike, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays by name; a file that is not whole, or not ours, is refused with the reason."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"a path to a file is needed; got {shortened(path)}.")
    missing = f"Check the path; {_MADE_BY.get(kind, _MADE_BY['checkpoint'])}."
    return from_bytes(read_bytes(path, LARGEST, missing), kind, str(path))


def from_bytes(content: bytes, kind: str, source: str = "this") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    first, _, body = content.partition(b"\n")
    words = first.split(b" ")
    if len(words) != 3 or words[0] != f"pfbr-{kind}".encode():
        if words[0].startswith(b"pfbr-") and len(first) < 200:
            other = shortened(words[0].decode(errors="replace")).strip("'")
            raise FileError(f"{source} is a {other} file, not a pfbr-{kind} file. {_WHERE_FROM.get(kind, '')}".strip())
        raise FileError(f"{source} is not a pfbr {kind} file. {_WHERE_FROM.get(kind, '')}".strip())
    if not words[1].isdigit() or len(words[1]) > 6 or int(words[1]) < 1:
        raise FileError(f"{source} is damaged: its first line names no format. Copy or make it again.")
    if int(words[1]) > FORMAT:
        raise FileError(f"{source} was written by a newer pfbr (format {int(words[1])}); update pfbr.")
    if int(words[1]) < FORMAT:
        raise FileError(f"{source} has format {int(words[1])}, of before the first release. Make it again.")
    if hashlib.sha256(body).hexdigest().encode() != words[2]:
        raise FileError(f"{source} is damaged or cut short: its checksum does not match. Copy or make it again.")
    line, _, numbers = body.partition(b"\n")
    header = parse_table(line, f"the header of {source}")
    if not isinstance(header.get("arrays"), list) or len(header["arrays"]) > MOST_ARRAYS:
        raise FileError(f"{source} has no header that says what it holds. Make it again.")
    return header, _arrays(header.pop("arrays"), numbers, source)


def _arrays(listed: list, numbers: bytes, source: str) -> dict[str, np.ndarray]:
    """The arrays that the header lists; sizes are checked before anything is made of them."""
    arrays: dict[str, np.ndarray] = {}
    position = 0
    for entry in listed:
        if not (
            isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("shape"), list)
        ):
            raise FileError(f"{source} lists an array without name or shape. Make it again.")
        name, shape, dtype = entry["name"], entry["shape"], entry.get("dtype")
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise FileError(f"{source} holds an array of type {dtype!r}, which pfbr does not use.")
        if name in arrays:
            raise FileError(f"{source} holds the array {name!r} twice. Make it again.")
        if len(shape) > 16 or not all(type(n) is int and 0 <= n <= LARGEST for n in shape):
            raise FileError(f"{source} holds an array of shape {shape!r}, which is none. Make it again.")
        size = np.dtype(dtype).itemsize
        for n in shape:
            size *= n  # Python's integers: no overflow
        if position + size > len(numbers):
            raise FileError(f"{source} says that {name!r} has {size} bytes, more than it holds. Make it again.")
        part = np.frombuffer(numbers, np.dtype(dtype), size // np.dtype(dtype).itemsize, position)
        arrays[name] = part.reshape(shape)
        position += size
    if position != len(numbers):
        raise FileError(f"{source} holds {len(numbers) - position} bytes that its header does not tell of.")
    return arrays


def named_leaves(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their paths in it, e.g. `.velocity.first`."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_array))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def filled(structure: Any, arrays: dict[str, np.ndarray], source: Any) -> Any:
    """A tree with the arrays in place of its shapes, each where its name says."""
    expected, rest = eqx.partition(structure, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct | jax.Array))
    leaves, treedef = jax.tree_util.tree_flatten_with_path(expected)
    # a run in another precision is welcome, whole numbers in the place of weights are not
    wanted = {jax.tree_util.keystr(path): (leaf.shape, np.dtype(leaf.dtype).kind) for path, leaf in leaves}
    found = {name: (a.shape, a.dtype.kind) for name, a in arrays.items()}
    if wanted != found:
        differ = sorted(n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n))
        raise FileError(
            f"{source} does not hold the arrays that its header describes ({', '.join(differ[:3])}); it was made by "
            "another pfbr."
        )
    filled_leaves = [jnp.asarray(arrays[jax.tree_util.keystr(path)]) for path, _ in leaves]
    return eqx.combine(jax.tree.unflatten(treedef, filled_leaves), rest)
