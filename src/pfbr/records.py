"""What a run leaves on disk: its settings, and one line of JSON for every number measured.

A kill at any moment leaves whole lines: each is written at once, and a torn last one is cut off before going on.
"""

import dataclasses
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pfbr.errors import FileError

SETTINGS, MEASUREMENTS = "settings.json", "measurements.jsonl"


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
        fields = json.loads(line)
        fields["value"] = math.nan if fields["value"] is None else float(fields["value"])
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
        self.directory.mkdir(parents=True, exist_ok=True)
        if settings is not None:
            self._agree_on(settings)
        self._cut_torn_line()

    @property
    def settings(self) -> dict[str, Any]:
        path = self.directory / SETTINGS
        if not path.is_file():
            raise FileError(f"{self.directory} holds no {SETTINGS}: it is not the directory of a run.")
        return json.loads(path.read_text(encoding="utf-8"))

    def add(self, measurements: Iterable[Measurement]) -> None:
        """Append; on return the lines are on disk."""
        lines = "".join(m.to_line() for m in measurements).encode()
        descriptor = os.open(self.directory / MEASUREMENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, lines)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def measurements(self) -> list[Measurement]:
        """All whole lines, oldest first; of two that measure the same thing, as after a kill, the later one counts."""
        path = self.directory / MEASUREMENTS
        if not path.is_file():
            return []
        *whole, _ = path.read_text(encoding="utf-8").split("\n")
        try:
            read = [Measurement.from_line(line) for line in whole if line]
        except (ValueError, TypeError, KeyError) as error:
            raise FileError(
                f"{path} holds a line that is no measurement ({error}). Move it away and run again."
            ) from None
        latest = {(m.method, m.metric, m.stage, m.num_particles, m.seed): m for m in read}
        return list(latest.values())

    def _agree_on(self, settings: dict[str, Any]) -> None:
        path = self.directory / SETTINGS
        text = json.dumps(settings, indent=2, sort_keys=True)
        if path.is_file():
            before = json.loads(path.read_text(encoding="utf-8"))
            now = json.loads(text)
            differing = sorted(k for k in before.keys() | now.keys() if before.get(k) != now.get(k))
            if differing:
                raise FileError(
                    f"{self.directory} holds a run with other settings ({', '.join(differing)}). "
                    "Choose another directory, or the same settings to go on with it."
                )
            return
        temporary = path.with_suffix(".json.part")
        temporary.write_text(text + "\n", encoding="utf-8")
        os.replace(temporary, path)

    def _cut_torn_line(self) -> None:
        path = self.directory / MEASUREMENTS
        if path.is_file():
            content = path.read_bytes()
            if content and not content.endswith(b"\n"):
                with path.open("rb+") as file:
                    file.truncate(content.rfind(b"\n") + 1)
