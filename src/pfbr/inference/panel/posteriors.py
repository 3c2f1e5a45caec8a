"""The posteriors of many streams after one call: a row each, in the order of the call."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from pfbr.errors import InputError
from pfbr.inference.info import Info
from pfbr.inference.posterior import Posterior
from pfbr.inference.summaries import Summaries
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles

STATUS = ("refused", "not observed", "weighed", "moved")
REFUSED, NOT_OBSERVED, WEIGHED, MOVED = range(4)


class Posteriors(Summaries):
    """Arrays (R, …), a row for each report; as a `Trace` has one for each stage.

    `status` says of each report whether it was "weighed", "moved", "not observed" or "refused", and `errors` why, by
    the row's number. A refused report left its stream as it was, and its row shows that; NaN where the stream has not
    begun.
    """

    def __init__(
        self,
        streams: list[Hashable],
        particles: Particles,
        parameters: Any,
        info: Info,
        status: np.ndarray,
        errors: dict[int, str],
        unknowns: Unknowns | None,
    ):
        self.streams = streams
        self.errors = errors
        self.status = np.asarray(STATUS)[status]
        super().__init__(particles, info, unknowns, parameters)

    def __len__(self) -> int:
        return len(self.streams)

    def __getitem__(self, row: int) -> Posterior:
        """The posterior of one report, by its place in the call."""
        if not isinstance(row, int | np.integer) or not -len(self) <= row < len(self):
            raise InputError(f"there are {len(self)} rows, in the order of the call; got {row!r}.")
        return Posterior(*self._picked(row))

    def __repr__(self) -> str:
        counts = ", ".join(f"{np.sum(self.status == one)} {one}" for one in STATUS if np.any(self.status == one))
        return f"Posteriors({len(self)} reports: {counts})"
