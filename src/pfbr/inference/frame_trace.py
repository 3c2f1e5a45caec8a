"""The posteriors of a frame's rows: one row for each, in the frame's own order, back as a frame of its kind."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.draws import Draws
from pfbr.inference.info import FIELDS, Info
from pfbr.inference.posterior import Trace
from pfbr.inference.tables import Ordered
from pfbr.io.frames import Table, frame_like
from pfbr.particles.particles import Particles

QUANTILES = (0.05, 0.5, 0.95)
TOLD = ("ess", "flagged", "log_predictive", "log_evidence")


class FrameTrace(Trace):
    """The posteriors of a frame of one stream, arrays (T, …) in order of time; `to_frame()` has the frame's order."""

    _table: Table
    _rows: Ordered

    @classmethod
    def of(cls, trace: Trace, table: Table, rows: Ordered) -> Any:
        """The same trace, which knows where its rows came from."""
        made = object.__new__(cls)
        made.__dict__.update(trace.__dict__, _table=table, _rows=rows, times=rows.times)
        return made

    @property
    def _places(self) -> np.ndarray:
        """Where the posterior of each row of the frame stands."""
        return np.argsort(self._rows.order)

    def columns(self, quantiles: Sequence[float] = QUANTILES) -> dict[str, np.ndarray]:
        """The summaries of `to_frame`, by name, one value for each row of the frame."""
        found = summaries("", self._draws, self._labels(), quantiles)
        if self.parameters is not None:
            found |= summaries("parameters.", self.parameters, None, quantiles)
        told = {name: getattr(self.info, name) for name in TOLD}
        found |= {name: np.asarray(value) for name, value in told.items() if value is not None}
        if "flagged" in found:
            found["flagged"] = found["flagged"] > 0
        for name in self._kept():
            if name in found:
                raise InputError(f"the frame's column {name!r} is called as one of the results: rename it.")
        return {name: values[self._places] for name, values in found.items()}

    def to_frame(self, quantiles: Sequence[float] = QUANTILES) -> Any:
        """A frame of the kind that came, with its index and order: the columns of stream and time, then `mean.NAME`,
        `std.NAME` and `q5.NAME` … of each unknown, `ess`, `flagged`, `log_predictive` and `log_evidence` (of the stream
        so far)."""
        if self._table.source is None:
            raise InputError("these rows came from a file and not from a frame: take `columns()`.")
        return frame_like(self._table.source, self._kept(), self.columns(quantiles))

    def _kept(self) -> list[str]:
        return [name for name in (self._table.by_name, self._table.time_name) if name is not None]

    def _labels(self) -> list[str]:
        dim = self.particles.shape[-1]
        return [f"x[{i}]" for i in range(dim)] if self._unknowns is None else self._unknowns.labels()


class StreamsTrace(FrameTrace):
    """The posteriors of many streams of one frame, arrays (N, …), one for each row in the frame's order.

    `streams` are their ids; `trace[id]` is the trace of one, in order of time. Its `session` and `scores()` run that
    stream once more.
    """

    _again: Callable[[int], Trace]

    @property
    def streams(self) -> list[Any]:
        return list(self._rows.ids)

    @property
    def stream_of_rows(self) -> list[Any]:
        """The id of the stream of each row."""
        return list(self._table.streams or [])

    def stages(self, stage: int) -> np.ndarray:
        """The row of every stream at one stage, -1 being the last of each."""
        lengths = self._rows.lengths
        short = np.flatnonzero((stage >= lengths) | (stage < -lengths))
        if short.size:
            name, has = self._rows.ids[short[0]], lengths[short[0]]
            raise InputError(
                f"`stage` must lie within every stream; {name!r} has {has} rows, and {stage} was asked for."
            )
        begins = np.cumsum(lengths) - lengths
        return self._rows.order[begins + (stage if stage >= 0 else lengths + stage)]

    @property
    def _places(self) -> np.ndarray:
        return np.arange(len(self._rows.order))

    def __getitem__(self, stream: Any) -> Trace:  # type: ignore[override]
        if stream not in self._rows.ids:
            some = ", ".join(map(repr, self._rows.ids[:5])) + (" …" if len(self._rows.ids) > 5 else "")
            raise InputError(f"there is no stream {stream!r}; there are {some}.")
        number = self._rows.ids.index(stream)
        mine = self._rows.order[self._rows.stream == number]
        particles, info, parameters = taken(self._particles, self._info, self._parameters, mine)
        again = functools.cache(lambda: self._again(number))
        one = Trace(
            jax.tree.map(jnp.asarray, particles),
            info,
            self._unknowns,
            parameters,
            scored=lambda levels: again().scores(levels),
            session=lambda: again().session,
        )
        one.times = None if self._table.times is None else self._table.times[mine]
        return one

    def plot(self, **_: Any) -> Any:
        raise InputError(
            f"this trace holds {len(self._rows.ids)} streams: plot one, such as trace[{self._rows.ids[0]!r}].plot()."
        )

    def _repr_html_(self) -> None:
        return None

    def __repr__(self) -> str:
        return f"StreamsTrace({len(self)} rows of {len(self._rows.ids)} streams)"


def taken(particles: Particles, info: Info, parameters: Any, index: np.ndarray) -> tuple[Particles, Info, Any]:
    """Some rows, in this order."""
    pick = lambda leaf: np.asarray(leaf)[index]
    said = {name: None if getattr(info, name) is None else pick(getattr(info, name)) for name in FIELDS}
    details = {name: pick(value) for name, value in info.details.items()}
    return jax.tree.map(pick, particles), Info(**said, details=details), jax.tree.map(pick, parameters)


def summaries(prefix: str, draws: Draws, labels: list[str] | None, quantiles: Sequence[float]) -> dict[str, np.ndarray]:
    """mean.NAME, std.NAME, q5.NAME … of every number."""
    tables = {"mean": draws.mean(), "std": draws.std()}
    levels = draws.quantile(list(quantiles)) if len(quantiles) else None
    for i, q in enumerate(quantiles):
        tables[f"q{100 * q:g}"] = jax.tree.map(lambda leaf, i=i: leaf[i], levels)
    found: dict[str, np.ndarray] = {}
    for what, tree in tables.items():
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            rows = np.asarray(leaf).reshape(len(leaf), -1)
            names = labels if not path and labels is not None else _numbered(path, np.shape(leaf)[1:])
            found |= {f"{prefix}{what}.{name}": rows[:, i] for i, name in enumerate(names)}
    return found


def _numbered(path: Any, shape: tuple[int, ...]) -> list[str]:
    """beta[0], beta[1], sigma"""
    name = ".".join(str(getattr(part, "key", getattr(part, "idx", part))) for part in path)
    return [name + (f"[{','.join(map(str, index))}]" if index else "") for index in np.ndindex(*shape)]
