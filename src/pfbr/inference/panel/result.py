"""The answer to one call, filled in as its rows become known."""

from collections.abc import Hashable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.info import Info
from pfbr.inference.panel.posteriors import REFUSED, Posteriors
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles


class Result:
    """Rows that are filled in as they are known; NaN, or zero, until then."""

    def __init__(self, number: int, errors: dict[int, str]):
        self.number = number
        self.status = np.full(number, REFUSED)
        self.errors = errors  # why, by the number of the row
        self.shown: Any = None  # particles, parameters
        self.info: Any = None

    def put(self, rows: np.ndarray, particles: Any, parameters: Any, info: Info | None, status: np.ndarray) -> None:
        self.shown = self._filled(self.shown, (particles, parameters), rows)
        if info is not None:
            self.info = self._filled(self.info, info, rows)
        self.status[rows] = status

    def _filled(self, room: Any, values: Any, rows: np.ndarray) -> Any:
        if room is None:
            empty = lambda leaf: np.nan if np.asarray(leaf).dtype.kind == "f" else 0
            make = lambda leaf: np.full((self.number, *np.shape(leaf)[1:]), empty(leaf), np.asarray(leaf).dtype)
            room = jax.tree.map(make, values)

        def write(buffer, leaf):
            buffer[rows] = leaf

        jax.tree.map(write, room, values)
        return room

    def posteriors(
        self, streams: list[Hashable], num_particles: int, dim: int, unknowns: Unknowns | None
    ) -> Posteriors:
        if self.shown is None:  # nothing could be used, and no stream has begun
            one = Particles(jnp.zeros((num_particles, dim)), jnp.zeros(num_particles))
            nan = lambda leaf: np.full((self.number, *leaf.shape), np.nan, leaf.dtype)
            self.shown = (jax.tree.map(nan, one), None)
        particles, parameters = self.shown
        info = Info() if self.info is None else self.info
        errors = dict(sorted(self.errors.items()))
        return Posteriors(streams, particles, parameters, info, self.status, errors, unknowns)
