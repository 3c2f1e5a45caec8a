"""What one step said about itself, as plain numbers, or arrays over stages."""

from typing import Any

import numpy as np

from pfbr.inference.info import FIELDS, Info, Move


class Said:
    """An `Info` as plain numbers, or arrays over stages: `info.ess`, `info.flagged`, `info.log_predictive` …"""

    ess: Any
    pareto_k: Any
    log_predictive: Any
    log_evidence: Any
    flagged: Any
    exact: Any
    move: Any
    possible: Any
    undefined: Any
    details: dict[str, Any]

    def __init__(self, info: Info):
        told = vars(info)  # a module's own attributes take long to get, one by one
        for name in FIELDS:
            value = told[name]
            setattr(self, name, None if value is None else _plain(value))
        if isinstance(self.move, int):
            self.move = _MOVES[self.move]
        self.details = {name: _plain(value) for name, value in told["details"].items()}

    def items(self) -> list[tuple[str, Any]]:
        """Name and value of everything that the method said."""
        own = [(name, getattr(self, name)) for name in FIELDS]
        return [(name, value) for name, value in (*own, *self.details.items()) if value is not None]

    def __repr__(self) -> str:
        return f"Info({', '.join(f'{name}={short(value)}' for name, value in self.items())})"

    def in_words(self) -> list[str]:
        """What a reader wants to know first about a single step."""
        words = [] if self.ess is None else [f"effective sample size {self.ess:.0f}"]
        words += [] if self.log_evidence is None else [f"log evidence {self.log_evidence:.4g}"]
        words += [] if self.move is None else [str(self.move)]
        return words + (["flagged: do not trust it"] if self.flagged else [])


_MOVES = {int(move): move.name.lower().replace("_", " ") for move in Move}


def _plain(value: Any) -> Any:
    if isinstance(value, float | int):  # bools too
        return value
    value = np.asarray(value)
    return value.item() if value.ndim == 0 else value


def short(value: Any) -> str:
    """A value in a few digits."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {short(one)}" for name, one in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return np.array2string(value, precision=3, threshold=8) if isinstance(value, np.ndarray) else str(value)
