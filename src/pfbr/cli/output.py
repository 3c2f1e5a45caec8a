"""Files that are whole or not there: written beside their place and moved into it."""

import os
from pathlib import Path

import numpy as np

from pfbr.errors import FileError, InputError


def check_writable(path: Path, *, suffix: str) -> Path:
    """Refuse an output path before the work, not after it."""
    if path.suffix != suffix:
        raise InputError(
            f"the output must be a {suffix} file; got {str(path)!r}. Write --out {path.stem or 'out'}{suffix}"
        )
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a directory; --out needs a file.")
    if not path.parent.is_dir():
        raise FileError(f"there is no directory {str(path.parent)!r} to write {path.name} into. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"the directory {str(path.parent)!r} cannot be written to.")
    return path


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """All arrays or none: an error half-way leaves what was there before."""
    # Not tempfile's: its files are readable by their owner alone, and would stay so in their place.
    temporary = path.with_name(f".{path.stem}-{os.getpid()}.npz")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
