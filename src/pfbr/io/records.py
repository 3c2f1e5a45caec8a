"""What a run leaves on disk: its settings, and one line of JSON for every number measured.

A kill at any moment leaves whole lines: each is written at once, and a torn last one is cut off before going on.
"""

import dataclasses
import errno
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.errors import FileError
from pfbr.io.arrays import read_npz
from pfbr.io.files import atomic, make_directory, strict, write_json, write_text
from pfbr.io.json_text import parse_table, read_bytes, read_table
from pfbr.io.schema import Kind, Optional, check_table, either, maybe, number, text, whole

SETTINGS, MEASUREMENTS = "settings.json", "measurements.jsonl"
LARGEST = 2**28  # bytes of measurements in one file
_INFINITE = Kind("inf or -inf", lambda value: value in ("inf", "-inf"))
MEASUREMENT: dict[str, Kind | Optional] = {
    "method": text(1000),
    "metric": text(1000),
    "stage": maybe(whole()),
    "value": maybe(either(number(), _INFINITE)),
    "error": Optional(maybe(either(number(), _INFINITE))),
    "num_particles": Optional(maybe(whole())),
    "num_sequences": Optional(maybe(whole())),
    "seed": Optional(maybe(whole(most=2**64))),
}


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One number: what was measured of which method, after how many observations (None: of the whole run)."""

    method: str
    metric: str
    stage: int | None
    value: float
    error: float | None = None  # standard error, where there is one
    num_particles: int | None = None
    num_sequences: int | None = None
    seed: int | None = None

    def to_line(self) -> str:
        """JSON has no word for NaN and infinity; they are written as null and as strings."""
        return json.dumps({name: _to_json(value) for name, value in dataclasses.asdict(self).items()}) + "\n"

    @classmethod
    def from_line(cls, line: str) -> "Measurement":
        return cls.from_fields(parse_table(line, "a measurement"))

    @classmethod
    def from_fields(cls, fields: dict[str, Any], source: str = "a measurement") -> "Measurement":
        check_table(fields, MEASUREMENT, source)
        if unknown := fields.keys() - MEASUREMENT.keys():
            raise FileError(f"{source} holds a measurement with the field {sorted(unknown)[0]!r}, which is unknown.")
        fields = dict(fields, value=math.nan if fields["value"] is None else float(fields["value"]))
        if isinstance(fields.get("error"), str):
            fields["error"] = float(fields["error"])
        return cls(**fields)


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


class Records:
    """A directory with the settings of a run and its measurements; opening an old one goes on where it stopped."""

    def __init__(self, directory: str | os.PathLike, settings: dict[str, Any] | None = None):
        self.directory = Path(directory)
        if self.directory.exists() and not self.directory.is_dir():
            raise FileError(f"{self.directory} is a file; records need a directory. Choose another path.")
        make_directory(self.directory)
        if settings is not None:
            agree_on(self.directory / SETTINGS, settings, "run")
        self._cut_torn_line()

    @property
    def settings(self) -> dict[str, Any]:
        path = self.directory / SETTINGS
        if not path.is_file():
            raise FileError(f"{self.directory} holds no {SETTINGS}: it is not the directory of a run.")
        return _read_settings(path)

    def add(self, measurements: Iterable[Measurement]) -> None:
        """Append; on return the lines are on disk."""
        lines, path = "".join(m.to_line() for m in measurements).encode(), self.directory / MEASUREMENTS
        try:
            with path.open("ab", buffering=0) as file:
                if file.write(lines) != len(lines):  # a disk that is nearly full takes a part of them
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror or error}.") from error

    def measurements(self) -> list[Measurement]:
        """All whole lines, oldest first; of two that measure the same thing, as after a kill, the later one counts."""
        path = self.directory / MEASUREMENTS
        if not path.is_file():
            return []
        *lines, _ = read_bytes(path, LARGEST).split(b"\n")
        read = []
        for count, line in enumerate(lines, start=1):
            if line:
                source = f"{path}, line {count}, which is no measurement,"
                read.append(Measurement.from_fields(parse_table(line, source), source))
        latest = {(m.method, m.metric, m.stage, m.num_particles, m.seed): m for m in read}
        return list(latest.values())

    def _cut_torn_line(self) -> None:
        path = self.directory / MEASUREMENTS
        if path.is_file():
            content = path.read_bytes()
            if content and not content.endswith(b"\n"):
                with path.open("rb+") as file:
                    file.truncate(content.rfind(b"\n") + 1)


def agree_on(path: Path, settings: dict[str, Any], what: str) -> None:
    """Write down what a directory is for; refuse one that is for something else."""
    text = json.dumps(strict(settings), indent=2, sort_keys=True)
    if path.is_file():
        before, now = _read_settings(path), json.loads(text)
        differing = sorted(k for k in before.keys() | now.keys() if before.get(k) != now.get(k))
        if differing:
            raise FileError(
                f"{path.parent} holds a {what} with other settings ({', '.join(differing)}). "
                "Choose another directory, or the same settings to go on with it."
            )
        return
    write_text(path, text + "\n")


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        return read_table(path)
    except FileError as error:
        raise FileError(f"{error} Or move {path} away and run again.") from None


def write_arrays(directory: Path, stem: str, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """What a run leaves that is not a list of numbers: STEM.json with its settings, STEM.npz with arrays by name."""
    make_directory(directory)
    write_npz(directory / f"{stem}.npz", arrays, compressed=True)
    write_json(directory / f"{stem}.json", settings)


def write_npz(path: Path, arrays: dict[str, np.ndarray], *, compressed: bool = False) -> None:
    """All arrays or none: an error half-way leaves what was there before."""
    with atomic(path) as file:
        (np.savez_compressed if compressed else np.savez)(file, **arrays)  # type: ignore[arg-type]


def read_arrays(directory: Path, stem: str, command: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `write_arrays` wrote; where there is nothing, the error names the `command` that makes it."""
    settings, arrays = directory / f"{stem}.json", directory / f"{stem}.npz"
    if not (settings.is_file() and arrays.is_file()):
        raise FileError(
            f"{str(directory)!r} holds no records of a {stem} ({stem}.json and {stem}.npz). Make them with `{command}`."
        )
    return read_table(settings), read_npz(arrays)
