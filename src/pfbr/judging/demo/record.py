"""What a scene of the demonstration leaves on disk: its settings, and named arrays."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfbr.io.records import read_arrays, write_arrays


@dataclass(frozen=True)
class DemoRecord:
    """Settings, numbers and arrays of one scene; its name is the stem of its two files."""

    name: str
    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def save(self, directory: Path) -> None:
        write_arrays(directory, self.name, self.settings, self.arrays)

    @classmethod
    def load(cls, directory: Path, name: str) -> "DemoRecord":
        return cls(name, *read_arrays(directory, name, "pfbr demo --out DIR"))


def as_float32(arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, dtype=np.float32) for name, value in arrays.items()}
