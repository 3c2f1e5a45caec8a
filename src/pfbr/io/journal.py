"""A write-ahead log: what was appended is on disk when `append` returns; one process at a time holds it.

Each line has a checksum. A kill or a power cut while a line is written leaves a part of it at the end, which was never
told to anybody: it is cut off when the log is opened again. The lock is the kernel's and ends with the process.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any

from pfbr.errors import FileError
from pfbr.io.files import sync_directory


class Journal:
    """`entries` are those that were there when the log was opened; `size` is what it has now, in bytes."""

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileError(f"there is no directory {str(self.path.parent)!r} for {self.path.name}. Create it first.")
        try:
            new = not self.path.exists()
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise FileError(f"cannot open {self.path}: {error.strerror}.") from None
        try:
            self._lock()
            if new:
                sync_directory(self.path.parent)
            self.entries, whole = _read(self.path.read_bytes(), str(self.path))
            os.ftruncate(self._descriptor, whole)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.size = whole

    def append(self, entry: Any) -> None:
        """Put one JSON value on disk."""
        line = _line(entry)
        try:
            written = os.write(self._descriptor, line)
            if written != len(line):
                os.ftruncate(self._descriptor, self.size)
                raise FileError(f"cannot write {self.path}: the disk is full.")
            os.fdatasync(self._descriptor) if hasattr(os, "fdatasync") else os.fsync(self._descriptor)
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"cannot write {self.path}: {error.strerror}.") from None
        self.size += len(line)

    def clear(self) -> None:
        """Let everything go; it is safe elsewhere."""
        os.ftruncate(self._descriptor, 0)
        os.fsync(self._descriptor)
        self.size = 0

    def close(self) -> None:
        os.close(self._descriptor)

    def _lock(self) -> None:
        import fcntl  # not on every platform

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileError(
                f"another process is using {self.path}: one at a time. End it first, or name another file."
            ) from None


def _line(entry: Any) -> bytes:
    text = json.dumps(entry, allow_nan=False).encode()
    return f"{zlib.crc32(text):08x} ".encode() + text + b"\n"


def _read(content: bytes, source: str) -> tuple[list[Any], int]:
    """The whole entries, and how many bytes they take; damage anywhere but at the end is refused."""
    entries, position = [], 0
    while position < len(content):
        end = content.find(b"\n", position)
        line = content[position : end if end >= 0 else len(content)]
        checksum, _, text = line.partition(b" ")
        if end < 0 or checksum != f"{zlib.crc32(text):08x}".encode():
            if 0 <= end < len(content) - 1:
                raise FileError(
                    f"{source} is damaged at byte {position}: what was answered since its last saved state cannot be "
                    "replayed. Restore a copy, or remove the file to go on from that state."
                )
            break
        entries.append(json.loads(text))
        position = end + 1
    return entries, position
