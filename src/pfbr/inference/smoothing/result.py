"""What is believed of each state of a stream given what came later: NumPy out, JAX inside."""

from typing import Any

import numpy as np

from pfbr.inference.draws import Draws
from pfbr.inference.smoothing.backward import SmoothedClouds
from pfbr.models.unknowns import Unknowns
from pfbr.typing import Numbers


class Smoothed:
    """States of T stages given all T, arrays (T, …), or of S streams, arrays (S, T, …).

    `way` is how it was done: "backward" by the density of the transition, "ancestors" by tracing paths of a particle
    filter. `ess` is how many particles, or different paths, count at each stage: with few, ask for more particles.
    """

    def __init__(self, found: SmoothedClouds, way: str, unknowns: Unknowns | None = None):
        self._found, self.way, self._unknowns = found, way, unknowns
        self.ess = np.asarray(found.ess)

    @property
    def _draws(self) -> Draws:
        return Draws.of(self._found.clouds.points, self._found.clouds.log_weights, self._unknowns)

    @property
    def samples(self) -> Any:
        """(…, T, n, …), equally weighted; `samples[:, i]` is one path from the first state to the last."""
        paths = self._found.paths
        return Draws.of(paths, np.zeros(paths.shape[:-1]), self._unknowns).values

    @property
    def particles(self) -> np.ndarray:
        """(…, T, n, d), the free numbers behind `mean()` and its like, with their `weights`"""
        return np.asarray(self._found.clouds.points)

    @property
    def weights(self) -> np.ndarray:
        """(…, T, n), summing to one"""
        return np.exp(np.asarray(self._found.clouds.log_weights))

    def mean(self) -> Any:
        """(…, T, …)"""
        return self._draws.mean()

    def std(self) -> Any:
        return self._draws.std()

    def quantile(self, q: Numbers) -> Any:
        """(*q.shape, …, T, …)"""
        return self._draws.quantile(q)

    def __len__(self) -> int:
        return self.ess.shape[-1]

    def __repr__(self) -> str:
        return f"Smoothed({len(self)} stages by {self.way}, ess {self.ess.min():.0f} to {self.ess.max():.0f})"
