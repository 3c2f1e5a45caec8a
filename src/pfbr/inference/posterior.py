"""What is believed after an observation, and after each of a recorded stream: NumPy out, JAX inside."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from pfbr.errors import InputError
from pfbr.inference.display import html, plots
from pfbr.inference.display.columns import Column, columns
from pfbr.inference.draws import Draws, weighted_covariance
from pfbr.inference.info import FIELDS, Info
from pfbr.inference.said import Said, short
from pfbr.inference.smoothing.result import Smoothed
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles
from pfbr.typing import Numbers


class Posterior:
    """The posterior after an observation. Arrays are NumPy's; they do not change when the session goes on.

    For a model with named unknowns `mean()`, `std()`, `quantile(q)` and `samples` are dicts on the user's scale;
    `particles` are the free numbers behind them.
    """

    def __init__(self, particles: Particles, info: Info, unknowns: Unknowns | None = None, parameters: Any = None):
        self._particles, self._unknowns, self._parameters = particles, unknowns, parameters
        self.info = Said(info)

    @property
    def _draws(self) -> Draws:
        return Draws.of(self._particles.points, self._particles.log_weights, self._unknowns)

    @property
    def particles(self) -> np.ndarray:
        """(n, d), as they are, with their `weights`"""
        return np.asarray(self._particles.points)

    @property
    def weights(self) -> np.ndarray:
        """(n,), summing to one"""
        return np.exp(np.asarray(self._particles.log_weights))

    @property
    def samples(self) -> Any:
        """(n, …), equally weighted, always"""
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
        """(n,), log q at each particle, where the method carries it"""
        density = self._particles.log_density
        return None if density is None else np.asarray(density)

    def mean(self) -> Any:
        return self._draws.mean()

    def std(self) -> Any:
        return self._draws.std()

    def cov(self) -> np.ndarray:
        """(d, d), of the particles."""
        return weighted_covariance(self._particles.points, self._particles.log_weights)

    def quantile(self, q: Numbers) -> Any:
        """Quantiles of each number, shape (*q.shape, …): `quantile([0.05, 0.95])` has two rows."""
        return self._draws.quantile(q)

    def expectation(self, function: Callable) -> np.ndarray:
        """E[function(x)] for a function of one x, written with NumPy or JAX."""
        return self._draws.expectation(function)

    def plot(self, *, names: Sequence[str] | None = None, truth: Any = None, axes: Any = None) -> Any:
        """A figure (matplotlib) with the density of each unknown, or of those in `names`, on `axes` of yours if given.

        `truth`, where it is known: a dict by name, or an array in their order.
        """
        return plots.marginals(self._columns, names=names, axes=axes, truth=truth)

    @property
    def _columns(self) -> list[Column]:
        beside = [] if self.parameters is None else columns(self.parameters, "parameters")
        return columns(self._draws, "x", self._unknowns.names if self._unknowns else ()) + beside

    def _repr_html_(self) -> str:
        n, d = self.particles.shape
        return html.posterior_html(
            f"Posterior of {d} unknowns", [f"{n} particles", *self.info.in_words()], self._columns
        )

    def __repr__(self) -> str:
        n, d = self.particles.shape
        return f"Posterior({n} particles in {d}-d, mean {short(self.mean())})"


class Trace:
    """The posteriors of a recorded stream, arrays (T, …), or of S streams, arrays (S, T, …).

    `smoothed` has each state given all of the stream, where that was asked for (`run(…, smooth=True)`), else None.
    """

    def __init__(
        self,
        particles: Particles,
        info: Info,
        unknowns: Unknowns | None = None,
        parameters: Any = None,
        smoothed: Smoothed | None = None,
        *,
        scored: Callable | None = None,
        session: Callable | None = None,
    ):
        self._particles, self._unknowns, self._info = particles, unknowns, info
        self._parameters, self.smoothed = parameters, smoothed
        self._scored, self._session = scored, session
        self.info = Said(info)
        self.times: Any = None  # as they came with the observations, where they did

    def scores(self, levels: Numbers = (0.5, 0.9)) -> Any:
        """CRPS, coverage, width and interval score of the one-step-ahead forecast of every observation, (…, T, …) each,
        and their means by name in `.summary()`. The forecasts are those of `Session.predict` before each."""
        if self._scored is None:
            raise InputError("this trace does not know its observations: take the one that `pfbr.run` gives.")
        return self._scored(levels=levels)

    @functools.cached_property
    def session(self) -> Any:
        """A session that goes on live from the end of this single stream: its next update is that of one which saw
        every row."""
        if self._session is None:
            raise InputError("this trace does not know its stream: take the one that `pfbr.run` gives.")
        return self._session()

    @property
    def _draws(self) -> Draws:
        return Draws.of(self._particles.points, self._particles.log_weights, self._unknowns)

    @property
    def particles(self) -> np.ndarray:
        """(…, T, n, d)"""
        return np.asarray(self._particles.points)

    @property
    def weights(self) -> np.ndarray:
        """(…, T, n)"""
        return np.exp(np.asarray(self._particles.log_weights))

    @property
    def parameters(self) -> Draws | None:
        """Static parameters beside the state, with `mean()`, `std()`, `quantile(q)` and `samples`, shaped as the model
        has them; sample i goes with sample i of the state. None for models without."""
        if self._parameters is None:
            return None
        return Draws(jax.tree.map(np.asarray, self._parameters), self.weights)

    @property
    def log_density(self) -> np.ndarray | None:
        """(…, T, n), where the method carries it"""
        density = self._particles.log_density
        return None if density is None else np.asarray(density)

    @property
    def samples(self) -> Any:
        """(…, T, n, …), equally weighted"""
        return self._draws.samples

    def mean(self) -> Any:
        """(…, T, …)"""
        return self._draws.mean()

    def std(self) -> Any:
        return self._draws.std()

    def cov(self) -> np.ndarray:
        """(…, T, d, d)"""
        return weighted_covariance(self._particles.points, self._particles.log_weights)

    def quantile(self, q: Numbers) -> Any:
        """(*q.shape, …, T, …)"""
        return self._draws.quantile(q)

    def __len__(self) -> int:
        return self.particles.shape[-3]

    def __getitem__(self, stage: int) -> Posterior:
        """The posterior after one observation of a single stream: `trace[-1]` is the last."""
        if self.particles.ndim != 3:
            raise InputError("this trace holds several streams: take its arrays, or run one stream.")
        if not -len(self) <= stage < len(self):
            raise InputError(f"this trace has {len(self)} stages; got {stage}.")
        own = Particles(*(None if part is None else part[stage] for part in _parts(self._particles)))  # type: ignore[arg-type]
        parameters = jax.tree.map(lambda leaf: leaf[stage], self._parameters)
        return Posterior(own, _at(self._info, stage), self._unknowns, parameters)

    def plot(self, *, names: Sequence[str] | None = None, truth: Any = None, axes: Any = None) -> Any:
        """A figure (matplotlib) of each unknown over the stream: median, central 50 % and 90 %.

        `names` picks some of them; `truth`, where it is known, is an array (T, …) or a dict of them; `axes` are
        yours to draw on.
        """
        if self.particles.ndim != 3:
            raise InputError("this trace holds several streams: run one, or take `trace[id]`, and plot that.")
        x, label = plots.axis_of(self.times, len(self))
        return plots.paths(self._columns, x, x_label=label, names=names, axes=axes, truth=truth)

    @property
    def _columns(self) -> list[Column]:
        beside = [] if self.parameters is None else columns(self.parameters, "parameters")
        return columns(self._draws, "x", self._unknowns.names if self._unknowns else ()) + beside

    def _repr_html_(self) -> str | None:
        if self.particles.ndim != 3:
            return None  # several streams: the line of text says enough
        stages, n, d = self.particles.shape
        return html.path_html(f"{stages} posteriors of {d} unknowns", [f"{n} particles"], self._columns, self.times)

    def __repr__(self) -> str:
        return f"Trace({' x '.join(map(str, self.particles.shape))}: streams, stages, particles, unknowns)"


def _parts(particles: Particles):
    return particles.points, particles.log_weights, particles.log_density


def _at(info: Info, stage: int) -> Info:
    picked = {name: None if getattr(info, name) is None else getattr(info, name)[stage] for name in FIELDS}
    return Info(**picked, details={name: value[stage] for name, value in info.details.items()})
