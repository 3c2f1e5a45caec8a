"""Streams by id, where each stands, and their states: they begin, take reports in, get more room, and end."""

from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh

from pfbr.inference.info import Move
from pfbr.inference.method import Method, State
from pfbr.inference.panel import steps
from pfbr.inference.panel.numbers import number_of
from pfbr.inference.panel.posteriors import MOVED, NOT_OBSERVED, REFUSED, WEIGHED
from pfbr.inference.panel.reports import Reports
from pfbr.inference.panel.result import Result
from pfbr.inference.panel.stores import Store, ends_when_full, make_stores, widened
from pfbr.inference.refusal import Fault, fault_in_words, faults
from pfbr.inference.rows import Row
from pfbr.models.base import Model
from pfbr.sharding import dealt, mapped, num_devices, on_host, padded
from pfbr.typing import Key

LATE = "`time` lies before the stream's last report, or before `start`: reports are taken in order of time"


class Streams:
    """Up to `capacity` streams of one model. Each has a place, with its number, stage, time, log evidence, and where
    its state is: which store, which slot."""

    def __init__(
        self,
        key: Key,
        method: Method,
        model: Model,
        num_particles: int,
        capacity: int,
        from_first: bool,
        mesh: Mesh | None = None,
    ):
        self.mesh = mesh
        self.key, self.method, self.model, self.num_particles = key, method, model, num_particles
        self.capacity, self.from_first = capacity, from_first
        self.example: Row | None = None  # the row that states are made for
        self.stores: list[Store] = []  # made when the first report has told what rows look like
        self.places: dict[Hashable, int] = {}
        self.numbers = 0  # streams named so far
        self.by_id = False  # whether a stream's number comes from its id
        self._free: list[int] = []
        self._weighs = self._one_by_one = False
        room = lambda dtype: np.zeros(capacity, dtype)
        self.number, self.stage, self.store, self.slot = (room(np.int32) for _ in range(4))
        self.now, self.log_evidence = room(np.float64), room(np.float64)

    def prepare(self, example: Row, stores: list[Store] | None = None) -> None:
        """Make room for states, now that a row has come."""
        self.example = example
        self.stores = stores or make_stores(self.method, self.model, self.num_particles, example, self.capacity)
        first = self.stores[0]
        about = (self.key, first.method, self.model, first.skeleton, example)
        self._weighs = steps.can_weigh(*about)
        self._one_by_one = steps.mostly_branches(*about)

    def read(self, place: int) -> State:
        """The state of one stream, leading with an axis of one."""
        return self.stores[self.store[place]].read(self.slot[place : place + 1])

    def remove(self, names: list[Hashable]) -> None:
        for name in dict.fromkeys(names):
            place = self.places.pop(name)
            self.stores[self.store[place]].free(self.slot[place : place + 1])
            self._free.append(place)

    def step(self, reports: Reports, rows: np.ndarray, result: Result) -> None:
        """One report each of several streams; what is refused is told, and leaves its stream as it was."""
        rows = np.array([row for row in rows if row not in result.errors], np.int64)
        names = [reports.streams[row] for row in rows]
        new = [name for name in names if name not in self.places]
        self._begin(new)
        places = np.fromiter((self.places[name] for name in names), np.int64, len(names))
        at, dt, late = self._elapsed(reports, rows, places)
        full = ends_when_full(self.method) & (self.stage[places] >= self.stores[-1].rows)
        for i in np.flatnonzero(late | full):
            room = f"its method stores its observations and has room for {self.stores[-1].rows}: a larger `history`"
            result.errors[int(rows[i])] = f"{LATE if late[i] else room}. The stream stays as it was."
        fine = np.flatnonzero(~(late | full))
        self._widen(places[fine])
        for number, store in enumerate(self.stores):
            here = fine[self.store[places[fine]] == number]
            if here.size:
                own = jax.tree.map(lambda leaf, at=rows[here]: leaf[at], reports.rows)
                given = Row(own.observation, own.observed, None if own.dt is None else dt[here], own.inputs)
                self._absorb(store, rows[here], places[here], at[here], given, reports, result)
        self.remove([name for name in new if self.stage[self.places[name]] == 0])  # they have not begun

    def show(self, name: Hashable, row: int, result: Result) -> None:
        """The row of a refused report: its stream's posterior, or NaN where there is none."""
        result.status[row] = REFUSED
        if name in self.places:
            state = self.read(self.places[name])
            shown = jax.vmap(lambda own: (self.method.particles(own), self.method.parameters(self.model, own)))(
                state.own
            )
            result.put(np.array([row]), *jax.tree.map(np.asarray, shown), None, np.array([REFUSED]))

    def _begin(self, new: list[Hashable]) -> None:
        """Give new streams a place and the next number, and draw their first particles."""
        for name in new:
            place = self._free.pop() if self._free else len(self.places)
            self.places[name] = place
            self.number[place] = number_of(name) if self.by_id else self.numbers
            self.stage[place], self.log_evidence[place] = 0, 0.0
            self.now[place] = np.nan if self.from_first else 0.0
            self.numbers += 1
        assert self.example is not None  # `prepare` was called
        store, places = self.stores[0], np.array([self.places[name] for name in new], np.int64)
        self.store[places], self.slot[places] = 0, store.take(len(places))
        shared = steps.Beginning(self.key, store.method, self.model, self.example, self.num_particles)
        for part, size in steps.buckets(len(places), devices=num_devices(self.mesh)):
            own = places[part]
            store.write(self.slot[own], self._called(steps.begin, shared, self.number[own], size))

    def _elapsed(self, reports: Reports, rows: np.ndarray, places: np.ndarray):
        """When reports came since the start, the time since the stream's last one, and which of them come too late."""
        now = self.now[places]
        begun = ~np.isnan(now)
        at = np.where(begun, now + 1.0, 0.0) if reports.at is None else reports.at[rows]
        dt = np.where(begun, at - np.where(begun, now, 0.0), 0.0)
        return at, np.maximum(dt, 0.0).astype(jnp.result_type(float)), (dt < 0) & (reports.rows.dt is not None)

    def _widen(self, places: np.ndarray) -> None:
        """Streams whose rows are full move to a store with more room."""
        for number, (store, wider) in enumerate(zip(self.stores[:-1], self.stores[1:], strict=True)):
            moving = places[(self.store[places] == number) & (self.stage[places] >= store.rows)]
            if moving.size:
                states = widened(store.read(self.slot[moving]), wider)
                store.free(self.slot[moving])
                self.store[moving], self.slot[moving] = number + 1, wider.take(len(moving))
                wider.write(self.slot[moving], states)

    def _absorb(self, store: Store, rows, places, at, given: Row, reports: Reports, result: Result) -> None:
        """Weigh all; gather those for which that is not enough, and move them."""
        left = np.arange(len(places))
        if self._weighs:
            enough = self._through(steps.weigh, WEIGHED, store, left, rows, places, at, given, reports, result)
            left = left[~enough]
        self._through(steps.move, MOVED, store, left, rows, places, at, given, reports, result)

    def _through(self, step, status, store, which, rows, places, at, given, reports, result) -> np.ndarray:
        """One of the two steps in padded buckets; which streams it was enough for."""
        enough = np.ones(len(which), bool)
        one_by_one = self._one_by_one and step is steps.move
        shared = steps.Stepping(self.key, store.method, self.model)
        for part, size in steps.buckets(len(which), one_by_one=one_by_one, devices=num_devices(self.mesh)):
            own = which[part]
            at_own = places[own]
            row = jax.tree.map(lambda leaf, own=own: leaf[own], given)
            states, real = store.read(self.slot[at_own]), np.ones(len(own), bool)
            standing = steps.Standing(self.number[at_own], self.stage[at_own], states, row, real)
            said = self._called(steps.move_each if one_by_one else step, shared, standing, size)
            enough[part] = said.enough
            if not said.enough.all():
                own, said = own[said.enough], jax.tree.map(lambda leaf, e=said.enough: leaf[e], said)
            self._keep(store, rows[own], places[own], at[own], said, status, reports, result)
        return enough

    def _called(self, step: Any, shared: Any, streams: Any, size: int) -> Any:
        """A step of streams that are padded to `size`, in one compiled call on every device."""
        number = len(jax.tree.leaves(streams)[0])
        streams = padded(streams, size)
        if isinstance(streams, steps.Standing):
            streams = eqx.tree_at(lambda s: s.real, streams, np.arange(size) < number)
        if self.mesh is None:
            back: Any = slice(number)
        else:
            order = dealt(size, self.mesh)
            back = np.argsort(order)[:number]
            streams = jax.tree.map(lambda leaf: leaf[order], streams)
        said = on_host(mapped(self.mesh, step, shared, streams))
        return jax.tree.map(lambda leaf: leaf[back], said)

    def _keep(self, store, rows, places, at, said: steps.Stepped, status, reports, result) -> None:
        """What has a posterior is written; the rest is refused."""
        found = faults(said.particles, said.info)
        for i in np.flatnonzero(found != Fault.NONE):
            share = 0.0 if said.info.undefined is None else float(said.info.undefined[i])
            where = f"observation {self.stage[places[i]] + 1} of stream {reports.streams[rows[i]]!r}"
            result.errors[int(rows[i])] = fault_in_words(int(found[i]), where, share)
        if (found != Fault.NONE).any():
            fine = found == Fault.NONE
            rows, places, at = rows[fine], places[fine], at[fine]
            said = jax.tree.map(lambda leaf: leaf[fine], said)
        store.write(self.slot[places], said.states)
        self.stage[places] += 1
        self.now[places] = at
        how: Any = np.full(len(rows), status)
        if said.info.move is not None and not self._weighs:
            how = np.where(np.isin(said.info.move, (Move.NONE, Move.WEIGHED)), WEIGHED, MOVED)
        how = np.where(reports.observed[rows], how, NOT_OBSERVED)
        info = said.info
        if info.log_predictive is not None:
            self.log_evidence[places] += info.log_predictive  # float64 on the host
            total = self.log_evidence[places]
            info = eqx.tree_at(lambda i: i.log_evidence, info, total, is_leaf=lambda leaf: leaf is None)
        result.put(rows, said.particles, said.parameters, info, how)
