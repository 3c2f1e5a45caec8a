"""Files that are whole or not there: everything that is written goes through here."""

import contextlib
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from pfbr.checks import shortened
from pfbr.errors import FileError, InputError

LONGEST_NAME = 255  # bytes, as file systems have it

_UNFINISHED: set[Path] = set()  # temporary files of this moment


def remove_unfinished() -> None:
    """For a process that ends at once: take away what is half-written."""
    for path in list(_UNFINISHED):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes its place when all of it is on disk.

    A kill or an error at any moment leaves what was there before. A disk that is full, or a place that cannot be
    written to, is an error of one line. A file that is there already keeps its permissions, and a link its target;
    what is no file (a pipe, /dev/null) is written to as it is.
    """
    path = Path(path)
    temporary = None
    try:
        if len(os.fsencode(path.name)) > LONGEST_NAME:
            raise FileError(f"cannot write {path}: its name is too long. Choose a shorter one.")
        if path.is_dir():
            raise FileError(f"cannot write {path}: it is a directory. Choose another name.")
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        place = Path(os.path.realpath(path))
        if not place.parent.exists():
            raise FileError(f"cannot write {path}: the folder {path.parent} does not exist. Create it first.")
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:40]}-", suffix=".part", dir=place.parent)
        temporary = Path(name)
        _UNFINISHED.add(temporary)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp's files are readable by their owner alone
        temporary.chmod(stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o666 & ~_umask())
        os.replace(temporary, place)
        sync_directory(place.parent)  # else a power cut may bring the old file back
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot write {path}: {error.strerror or error}.") from error
    except ValueError as error:
        if "\0" not in str(path):
            raise
        raise FileError(f"cannot write {shortened(str(path))}: there is a NUL in the name.") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
            _UNFINISHED.discard(temporary)


def sync_directory(directory: Path) -> None:
    """Have the names in a directory on disk too, where the platform can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
    with atomic(path) as file:
        file.write(content)


def write_text(path: str | os.PathLike, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: str | os.PathLike, value: Any) -> None:
    write_text(path, json.dumps(strict(value), indent=2) + "\n")


def make_directory(path: str | os.PathLike) -> Path:
    """The directory, made where it is not there yet."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the directory {path}: {error.strerror}. Choose another place.") from None
    return path


def check_writable(path: Path, *, suffix: str) -> Path:
    """Refuse an output path before the work, not after it."""
    if path.suffix != suffix:
        name = shortened(str(path))
        raise InputError(f"the output must be a {suffix} file; got {name}. Write --out {path.stem[:40]}{suffix}")
    if "\0" in str(path) or len(os.fsencode(path.name)) > LONGEST_NAME:
        raise InputError(f"{shortened(str(path))} is no name for a file: it is too long, or has a NUL in it.")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a directory; --out needs a file.")
    if not path.parent.is_dir():
        raise FileError(f"there is no directory {str(path.parent)!r} to write {path.name} into. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"the directory {str(path.parent)!r} cannot be written to.")
    return path


def strict(value: Any) -> Any:
    """JSON has no word for NaN and infinity: null stands for them."""
    if isinstance(value, dict):
        return {name: strict(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
