"""The posteriors of many streams after one call: a row each, in the order of the call."""

from collections.abc import Hashable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.draws import Draws
from pfbr.inference.info import FIELDS, Info
from pfbr.inference.posterior import Posterior
from pfbr.inference.said import Said
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles
from pfbr.typing import Numbers

STATUS = ("refused", "not observed", "weighed", "moved")
REFUSED, NOT_OBSERVED, WEIGHED, MOVED = range(4)


class Posteriors:
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
        self._particles, self._parameters, self._info, self._unknowns = particles, parameters, info, unknowns
        self.info = Said(info)

    @property
    def _draws(self) -> Draws:
        return Draws.of(self._particles.points, self._particles.log_weights, self._unknowns)

    @property
    def particles(self) -> np.ndarray:
        """(R, n, d), as they are, with their `weights`"""
        return np.asarray(self._particles.points)

    @property
    def weights(self) -> np.ndarray:
        """(R, n)"""
        return np.exp(np.asarray(self._particles.log_weights))

    @property
    def samples(self) -> Any:
        """(R, n, …), equally weighted"""
        return self._draws.samples

    @property
    def parameters(self) -> Draws | None:
        """Static parameters beside the states; None for models without."""
        return None if self._parameters is None else Draws(self._parameters, self.weights)

    def mean(self) -> Any:
        """(R, …)"""
        return self._draws.mean()

    def std(self) -> Any:
        return self._draws.std()

    def quantile(self, q: Numbers) -> Any:
        """(*q.shape, R, …)"""
        return self._draws.quantile(q)

    def __len__(self) -> int:
        return len(self.streams)

    def __getitem__(self, row: int) -> Posterior:
        """The posterior of one report, by its place in the call."""
        if not isinstance(row, int | np.integer) or not -len(self) <= row < len(self):
            raise InputError(f"there are {len(self)} rows, in the order of the call; got {row!r}.")
        own = Particles(*(None if part is None else jnp.asarray(part[row]) for part in _parts(self._particles)))  # type: ignore[arg-type]
        picked = {
            name: None if getattr(self._info, name) is None else getattr(self._info, name)[row] for name in FIELDS
        }
        info = Info(**picked, details={name: value[row] for name, value in self._info.details.items()})
        return Posterior(own, info, self._unknowns, jax.tree.map(lambda leaf: leaf[row], self._parameters))

    def __repr__(self) -> str:
        counts = ", ".join(f"{np.sum(self.status == one)} {one}" for one in STATUS if np.any(self.status == one))
        return f"Posteriors({len(self)} reports: {counts})"


def _parts(particles: Particles):
    return particles.points, particles.log_weights, particles.log_density
