"""One process at a time: a lock beside what is written, which the system takes away when its holder ends, however."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pfbr.errors import FileError
from pfbr.io.files import make_directory

try:
    import fcntl
except ImportError:  # not a Unix: there is nothing to hold
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def held(path: str | os.PathLike, *, what: str = "written to") -> Iterator[None]:
    """Hold the lock of `path` (which need not exist); where another process holds it, an error says so at once.

    The lock is on a hidden file beside it, `.NAME.lock`, or inside where `path` is a directory. A crash may leave that
    file behind, but never the lock.
    """
    if fcntl is None:
        yield
        return
    path = Path(path)
    place = path / ".lock" if path.is_dir() else path.with_name(f".{path.name[:200]}.lock")
    descriptor = _locked(place, path, what)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            place.unlink()
        os.close(descriptor)


@contextlib.contextmanager
def held_directory(path: str | os.PathLike) -> Iterator[Path]:
    """The same for a directory, which is made where it is not there; one that stays empty is taken away again."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise FileError(f"{path} is a file; a directory is needed. Choose another path.")
    made = not path.exists()
    make_directory(path)
    try:
        with held(path):
            yield path
    finally:
        if made:
            with contextlib.suppress(OSError):
                path.rmdir()


def _locked(place: Path, path: Path, what: str) -> int:
    while True:
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror}. Choose another place.") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_there(descriptor, place):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise FileError(
                f"{path} is being {what} by another process. Wait until it ends, or choose another path."
            ) from None
        except OSError:  # a file system without locks: as before there were any
            return descriptor
        os.close(descriptor)  # its holder took it away between our two calls


def _is_still_there(descriptor: int, place: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), place.stat())
    except FileNotFoundError:
        return False
