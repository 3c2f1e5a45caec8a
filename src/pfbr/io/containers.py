"""One file for arrays and how they were made: a line with a checksum, a line of JSON, then the numbers."""

import hashlib
import json
import math
import os
from pathlib import Path

import numpy as np

from pfbr.errors import FileError

FORMAT = 1
_DTYPES = {"float32", "float64", "int32", "int64", "uint32", "bool"}


_WHERE_FROM = {
    "operator": "An operator is what `pfbr train --out` or pfbr.save writes.",
    "checkpoint": "A checkpoint is what training writes while it runs; `resume` goes on from it.",
}


def write(path: str | os.PathLike, kind: str, header: dict, arrays: list[np.ndarray]) -> None:
    """Write so that a kill at any moment leaves either the old file or the new one, never half of one."""
    arrays = [np.asarray(a) for a in arrays]  # not ascontiguousarray, which gives a number a dimension
    described = dict(header, arrays=[{"shape": list(a.shape), "dtype": str(a.dtype)} for a in arrays])
    body = json.dumps(strict(described), allow_nan=False).encode() + b"\n" + b"".join(a.tobytes() for a in arrays)
    first = f"pfbr-{kind} {FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode()
    path = Path(path)
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}: the folder {path.parent} does not exist. Create it first.")
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(first + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike, kind: str) -> tuple[dict, list[np.ndarray]]:
    """The header and the arrays; a file that is not whole, or not ours, is refused with the reason."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        made = "`pfbr train SPEC --out FILE` makes one" if kind == "operator" else "start without `resume` to make one"
        raise FileError(f"there is no file {path}. Check the path; {made}.") from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    first, _, body = content.partition(b"\n")
    words = first.split(b" ")
    if len(words) != 3 or words[0] != f"pfbr-{kind}".encode():
        if words[0].startswith(b"pfbr-"):
            other = words[0].decode(errors="replace")
            raise FileError(f"{path} is a {other} file, not a pfbr-{kind} file. {_WHERE_FROM.get(kind, '')}".strip())
        raise FileError(f"{path} is not a pfbr {kind} file. {_WHERE_FROM.get(kind, '')}".strip())
    if words[1] == b"0" or not words[1].isdigit():
        raise FileError(f"{path} is damaged: its first line names no format. Copy or make it again.")
    if int(words[1]) > FORMAT:
        raise FileError(
            f"{path} was written by a newer pfbr (format {words[1].decode(errors='replace')}); update pfbr."
        )
    if hashlib.sha256(body).hexdigest().encode() != words[2]:
        raise FileError(f"{path} is damaged or cut short: its checksum does not match. Copy or make it again.")
    line, _, numbers = body.partition(b"\n")
    header = json.loads(line)
    arrays, position = [], 0
    for entry in header.pop("arrays"):
        if entry["dtype"] not in _DTYPES:
            raise FileError(f"{path} holds an array of type {entry['dtype']}, which pfbr does not use.")
        dtype = np.dtype(entry["dtype"])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        arrays.append(np.frombuffer(numbers, dtype, count, position).reshape(entry["shape"]))
        position += count * dtype.itemsize
    return header, arrays


def strict(value):
    """JSON has no word for NaN and infinity: null stands for them."""
    if isinstance(value, dict):
        return {name: strict(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
