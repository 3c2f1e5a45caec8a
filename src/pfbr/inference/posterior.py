"""What is believed after an observation, and after each of a recorded stream: NumPy out, JAX inside."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pfbr.errors import InputError
from pfbr.inference.display import html, plots
from pfbr.inference.display.columns import Column, columns
from pfbr.inference.info import Info
from pfbr.inference.said import short
from pfbr.inference.smoothing.result import Smoothed
from pfbr.inference.summaries import Summaries
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles
from pfbr.typing import Numbers


class Posterior(Summaries):
    """The posterior after an observation. Arrays are NumPy's; they do not change when the session goes on."""

    def __init__(
        self,
        particles: Particles | Callable[[], Particles],
        info: Info,
        unknowns: Unknowns | None = None,
        parameters: Any = None,
    ):
        super().__init__(particles, info, unknowns, parameters)

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
            f"Posterior of {html.counted(d, 'unknown')}", [f"{n} particles", *self.info.in_words()], self._columns
        )

    def __repr__(self) -> str:
        n, d = self.particles.shape
        return f"Posterior({n} particles in {d}-d, mean {short(self.mean())})"


class Trace(Summaries):
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
        super().__init__(particles, info, unknowns, parameters)
        self.smoothed, self._scored, self._session = smoothed, scored, session
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

    def __len__(self) -> int:
        return self.particles.shape[-3]

    def __getitem__(self, stage: int) -> Posterior:
        """The posterior after one observation of a single stream: `trace[-1]` is the last."""
        if self.particles.ndim != 3:
            raise InputError("this trace holds several streams: take its arrays, or run one stream.")
        if not -len(self) <= stage < len(self):
            raise InputError(f"this trace has {len(self)} stages; got {stage}.")
        return Posterior(*self._picked(stage))

    def plot(self, *, names: Sequence[str] | None = None, truth: Any = None, axes: Any = None) -> Any:
        """A figure (matplotlib) of each unknown over the stream: median, central 50 % and 90 %.

        `names` picks some of them; `truth`, where it is known, is an array (T, …), or one value of what stands still,
        or a dict of either by name; `axes` are yours to draw on.
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
        title = f"{html.counted(stages, 'posterior')} of {html.counted(d, 'unknown')}"
        return html.path_html(title, [f"{n} particles"], self._columns, self.times)

    def __repr__(self) -> str:
        return f"Trace({' x '.join(map(str, self.particles.shape))}: streams, stages, particles, unknowns)"
