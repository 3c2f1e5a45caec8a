"""What one posterior, a recorded stream of them and a round of many have in common: weighted particles, summed up."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.draws import Draws, weighted_covariance
from pfbr.inference.info import FIELDS, Info
from pfbr.inference.said import Said
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles
from pfbr.typing import Numbers


class Summaries:
    """Particles (…, n, d), what was said about their steps, and the names of the unknowns.

    For a model with named unknowns `mean()`, `std()`, `quantile(q)` and `samples` are dicts on the user's scale;
    `particles` are the free numbers behind them. Arrays are NumPy's.
    """

    def __init__(
        self, particles: Particles | Callable[[], Particles], info: Info, unknowns: Unknowns | None, parameters: Any
    ):
        self._made, self._info, self._unknowns, self._parameters = particles, info, unknowns, parameters
        self.info = Said(info)

    @functools.cached_property
    def _particles(self) -> Particles:
        """Made when first asked for: a stream is updated more often than looked at."""
        return self._made() if callable(self._made) else self._made

    @property
    def _draws(self) -> Draws:
        return Draws.of(self._particles.points, self._particles.log_weights, self._unknowns)

    @property
    def particles(self) -> np.ndarray:
        """(…, n, d), as they are, with their `weights`"""
        return np.asarray(self._particles.points)

    @property
    def weights(self) -> np.ndarray:
        """(…, n), summing to one"""
        return np.exp(np.asarray(self._particles.log_weights))

    @property
    def samples(self) -> Any:
        """(…, n, …), equally weighted, always"""
        return self._draws.samples

    @property
    def parameters(self) -> Draws | None:
        """Static parameters beside the state, with `mean()`, `std()`, `quantile(q)` and `samples`, shaped as the model
        has them; sample i goes with sample i of the state. None for models without."""
        if self._parameters is None:
            return None
        return Draws(jax.tree.map(np.asarray, self._parameters), self.weights)

    @property
    def log_density(self) -> np.ndarray | None:
        """(…, n), log q at each particle, where the method carries it"""
        density = self._particles.log_density
        return None if density is None else np.asarray(density)

    def mean(self) -> Any:
        return self._draws.mean()

    def std(self) -> Any:
        return self._draws.std()

    def cov(self) -> np.ndarray:
        """(…, d, d), of the particles."""
        return weighted_covariance(self._particles.points, self._particles.log_weights)

    def quantile(self, q: Numbers) -> Any:
        """Quantiles of each number, shape (*q.shape, …): `quantile([0.05, 0.95])` has two rows."""
        return self._draws.quantile(q)

    def _picked(self, index: int) -> tuple[Particles, Info, Unknowns | None, Any]:
        """What one of several posteriors is made of."""
        at = lambda value: None if value is None else value[index]
        own = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), self._particles)
        said = {name: at(getattr(self._info, name)) for name in FIELDS}
        info = Info(**said, details={name: value[index] for name, value in self._info.details.items()})
        return own, info, self._unknowns, jax.tree.map(lambda leaf: leaf[index], self._parameters)
