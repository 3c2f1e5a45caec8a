"""Thousands of posteriors at once: whoever reports is updated, in one compiled call."""

import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.checks import check_memory, checked_count, checked_key, checked_num_particles, shortened
from pfbr.errors import InputError
from pfbr.inference.clock import Clock
from pfbr.inference.fingerprint import Fingerprint, fingerprint
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.inference.panel import panel_file
from pfbr.inference.panel.forecasts import Forecasts, draw_streams, steps_ahead
from pfbr.inference.panel.posteriors import MOVED, REFUSED, Posteriors
from pfbr.inference.panel.reports import ReportReader, rounds
from pfbr.inference.panel.result import Result
from pfbr.inference.panel.stores import Store, check_capacity
from pfbr.inference.panel.streams import Streams
from pfbr.inference.posterior import Posterior
from pfbr.inference.registry import as_method
from pfbr.io.files import write_bytes
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.unknowns import Unknowns
from pfbr.sharding import checked_mesh
from pfbr.typing import Numbers


class Panel:
    """Independent streams of one model, told apart by any hashable id: each begins when it is first named.

    `capacity` is the largest number of streams at a time; room that no stream has used costs nothing. `start` is the
    time of every prior; None: a stream's prior is that of its first report. `mesh`, of JAX's devices or "all", divides
    the streams of a call among devices. Other settings are those of a `Session`.
    The stream that was named as number s, from 0, has the key `fold_in(key, s)`: its particles are those of a session
    with that key, whoever else reports. With `by_id` the number comes from the id (`pfbr.inference.panel.numbers`): the
    order in which streams are named is of no matter either.
    """

    def __init__(
        self,
        model: Model,
        capacity: int = 10_000,
        *,
        method: str | Method = "auto",
        key: int | jax.Array = 0,
        num_particles: int = 64,
        history: int = 256,
        start: Any = 0.0,
        time_unit: str | None = None,
        mesh: Any = None,
        by_id: bool = False,
    ):
        self.model = checked_methods_of(checked_model(model))
        self.capacity = checked_count("capacity", capacity, least=1, why="a number of streams")
        check_memory(f"`capacity` = {shortened(self.capacity)}", 40 * self.capacity, "Make room for fewer streams.")
        self.num_particles = checked_num_particles(num_particles)
        self.method = as_method(method, self.model, history=history)
        self._unknowns = Unknowns.of(model)
        self._clock = None if start is None else Clock(start, time_unit)
        self._time_unit = time_unit
        self._reader = ReportReader(self.model)
        self._streams = Streams(
            checked_key(key),
            self.method,
            self.model,
            self.num_particles,
            self.capacity,
            start is None,
            checked_mesh(mesh),
        )
        self._streams.by_id = by_id
        self.num_reports = self.num_moved = 0
        self._fingerprint: Fingerprint | None = None  # of the model, once it was asked for

    def update(
        self, observations: Numbers | Sequence, streams: Sequence[Hashable], *, time: Any = None, inputs: Any = None
    ) -> Posteriors:
        """The posteriors of the streams that report, rows as in the call; None or NaN: what was not observed.

        `observations` and `inputs` lead with the report; `time` is one for all or one for each. A stream may report
        twice in a call. A report that cannot be used is refused by itself (`status`, `errors`); the others go on.
        """
        clock = self._clock
        if clock is None and time is not None:  # times are told from the first one
            clock = Clock(time if np.ndim(time) == 0 else next(iter(time)), self._time_unit)
        reports = self._reader.read(observations, streams, time, inputs, clock or Clock())
        used = {name for row, name in enumerate(reports.streams) if row not in reports.refused}
        check_capacity(len(self._streams.places.keys() | used), self.capacity)
        self._clock = clock
        if self._streams.example is None:
            self._streams.prepare(jax.tree.map(lambda leaf: leaf[0], reports.rows))
        result = Result(len(reports), dict(reports.refused))
        for rows in rounds(reports):
            self._streams.step(reports, rows, result)
        for row in result.errors:
            self._streams.show(reports.streams[row], row, result)
        self.num_reports += int(np.sum(result.status != REFUSED))
        self.num_moved += int(np.sum(result.status == MOVED))
        return result.posteriors(reports.streams, self.num_particles, int(self.model.dim), self._unknowns)

    def remove(self, streams: Hashable | Iterable[Hashable]) -> None:
        """End streams: one id, or a list of them. Their room is used again; one that is named again begins anew."""
        names: list[Any] = [*streams] if isinstance(streams, list | set | np.ndarray) else [streams]
        for name in names:
            self._place(name)
        self._streams.remove(names)

    def posterior(self, stream: Hashable) -> Posterior:
        """The current posterior of one stream."""
        place = self._place(stream)
        own = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), self._streams.read(place)).own
        info = Info(log_evidence=np.asarray(self._streams.log_evidence[place]))
        return Posterior(self.method.particles(own), info, self._unknowns, self.method.parameters(self.model, own))

    def predict(
        self,
        streams: Sequence[Hashable] | None = None,
        *,
        horizon: int | None = None,
        times: Any = None,
        inputs: Any = None,
    ) -> Forecasts:
        """States and observations to come of some streams, or of all, rows as in the call: after `horizon` units of
        time one by one, or at `times`. `inputs` has a row for each step, the same for all streams."""
        names = self.streams if streams is None else list(streams)
        if not names:
            raise InputError("there is no stream to predict: update the panel first.")
        places = np.array([self._place(name) for name in names], np.int64)
        now = self._streams.now[places]
        ahead, told, length = steps_ahead(self._clock, now, horizon, times, self._reader.takes_dt)
        given = self._reader.read_inputs_ahead(inputs, length)
        drawn = draw_streams(self._streams, places, ahead, given, length, self.model)
        return Forecasts(names, told, drawn, self.model)

    @property
    def streams(self) -> list[Hashable]:
        """The ids of all streams, in the order in which they were named."""
        places = self._streams.places
        return sorted(places, key=lambda name: self._streams.number[places[name]])

    @property
    def share_moved(self) -> float:
        """The share of all reports so far for which weighing was not enough."""
        return self.num_moved / max(self.num_reports, 1)

    @property
    def bytes_per_stream(self) -> int:
        """What the state of a young stream takes; its rows take more room as they come."""
        return self._streams.stores[0].bytes_per_stream if self._streams.stores else 0

    def stage(self, stream: Hashable) -> int:
        """How many reports of a stream were absorbed."""
        return int(self._streams.stage[self._place(stream)])

    def log_evidence(self, stream: Hashable) -> float:
        return float(self._streams.log_evidence[self._place(stream)])

    def save(self, path: str | os.PathLike) -> None:
        """Write all streams to one file, whole or not at all, to go on from there bit for bit."""
        write_bytes(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes. Ids are texts, numbers, or tuples of these."""
        held = self._streams
        if self._fingerprint is None or (self._fingerprint.row is None and held.example is not None):
            self._fingerprint = fingerprint(self.model, held.example)
        names = self.streams
        places = np.fromiter((held.places[name] for name in names), np.int64, len(names))
        of_store = [places[held.store[places] == number] for number in range(len(held.stores))]
        saved = panel_file.SavedPanel(
            self.method,
            held.key,
            {
                "capacity": self.capacity,
                "num_particles": self.num_particles,
                "numbers": held.numbers,
                "num_reports": self.num_reports,
                "num_moved": self.num_moved,
            },
            None if self._clock is None else self._clock.zero,
            self._time_unit,
            held.from_first,
            held.by_id,
            names,
            {name: getattr(held, name)[places] for name in panel_file.STANDING},
            held.example,
            [store.read(held.slot[own]) for store, own in zip(held.stores, of_store, strict=True)],
            self._fingerprint,
        )
        return panel_file.to_bytes(saved, self.model)

    @classmethod
    def restore(cls, path: str | os.PathLike, model: Model, *, mesh: Any = None) -> "Panel":
        """The panel that `save` wrote; another model than that one's is refused with what differs. It may go on with
        other devices, `mesh`."""
        return cls._resumed(*panel_file.read(path, checked_model(model)), model, mesh)

    @classmethod
    def from_bytes(cls, data: bytes, model: Model, *, mesh: Any = None) -> "Panel":
        """The panel that `to_bytes` wrote."""
        return cls._resumed(*panel_file.from_bytes(data, checked_model(model)), model, mesh)

    @classmethod
    def _resumed(cls, saved: panel_file.SavedPanel, stores: list[Store], model: Model, mesh: Any) -> "Panel":
        counts = saved.counts
        panel = cls(
            model,
            counts["capacity"],
            method=saved.method,
            key=saved.key,
            num_particles=counts["num_particles"],
            start=saved.start,
            time_unit=saved.time_unit,
            mesh=mesh,
        )
        panel._fingerprint, panel.num_reports, panel.num_moved = (
            saved.fingerprint,
            counts["num_reports"],
            counts["num_moved"],
        )
        held = panel._streams
        held.from_first, held.by_id, held.numbers = saved.from_first, saved.by_id, counts["numbers"]
        held.places = {name: place for place, name in enumerate(saved.streams)}
        for name in panel_file.STANDING:
            getattr(held, name)[: len(saved.streams)] = saved.standing[name]
        if saved.example is not None:
            held.prepare(saved.example, stores)
            panel._reader.resume(saved.example)
        for number, (store, states) in enumerate(zip(stores, saved.states, strict=True)):
            own = np.flatnonzero(saved.standing["store"] == number)
            held.slot[own] = store.take(len(own))
            store.write(held.slot[own], states)
        return panel

    def __len__(self) -> int:
        return len(self._streams.places)

    def __contains__(self, stream: Hashable) -> bool:
        return stream in self._streams.places

    def __repr__(self) -> str:
        return f"Panel({len(self)} of {self.capacity} streams, {self.num_particles} particles each)"

    def _place(self, stream: Any) -> int:
        try:
            place = self._streams.places.get(stream)
        except TypeError:
            raise InputError(f"`stream` must be a hashable id; got {stream!r}.") from None
        if place is None:
            raise InputError(f"there is no stream {stream!r} in this panel: it begins when it is first updated.")
        return place
