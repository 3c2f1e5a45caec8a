"""Arrays from .npy and .npz files: numbers only, never objects, and sizes are checked before anything is allocated."""

import io
import math
import os
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy

from pfbr.checks import shortened
from pfbr.errors import FileError
from pfbr.io.json_text import read_bytes

LARGEST = 2**33  # bytes of numbers in one file: 8 GB
KINDS = "fiubU"  # floats, whole numbers, truths; texts only where they are asked for


def read_npy(path: str | os.PathLike, *, kinds: str = "fiub") -> np.ndarray:
    """The array of a .npy file."""
    return array_of(read_bytes(path, LARGEST), str(path), kinds)


def read_npz(path: str | os.PathLike, *, kinds: str = KINDS) -> dict[str, np.ndarray]:
    """The arrays of a .npz file, by name."""
    content = read_bytes(path, LARGEST)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            claimed = sum(member.file_size for member in archive.infolist())
            if claimed > LARGEST:
                raise FileError(f"{path} claims to hold {claimed} bytes, more than {LARGEST}. Make it again.")
            members = {member.filename: archive.read(member) for member in archive.infolist()}
    except FileError:
        raise
    except Exception as error:  # `zipfile` raises what its parts do; a flipped bit may even ask for a password
        raise FileError(f"{path} cannot be read as .npz: damaged or cut short ({shortened(str(error))}).") from None
    return {
        name.removesuffix(".npy"): array_of(content, f"{path}, {name!r}", kinds) for name, content in members.items()
    }


def array_of(content: bytes, source: str, kinds: str = "fiub") -> np.ndarray:
    """The array that a .npy file's bytes hold; its header must tell the truth about them."""
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        readers: dict[Any, Any] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, in_columns, dtype = readers[version](stream)
    except Exception as error:  # NumPy reads the header as a Python literal, and raises whatever that does
        said = shortened(str(error)) or type(error).__name__
        raise FileError(f"{source} cannot be read as .npy: damaged or cut short ({said}).") from None
    if dtype.kind not in kinds:
        raise FileError(f"{source} must hold an array of numbers; it holds {dtype}.")
    held = len(content) - stream.tell()
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) * dtype.itemsize != held:
        raise FileError(f"{source} claims an array of shape {shortened(shape)} and holds {held} bytes. Make it again.")
    array = np.frombuffer(content, dtype, math.prod(shape), stream.tell())
    return array.reshape(shape, order="F" if in_columns else "C")
