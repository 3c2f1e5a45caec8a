"""Many streams of one table, each by itself, whatever their lengths."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import Mesh

from pfbr.checks import checked_key, checked_num_particles
from pfbr.inference.clock import Clock
from pfbr.inference.frame_trace import StreamsTrace, taken
from pfbr.inference.method import Method, Stream
from pfbr.inference.posterior import Trace
from pfbr.inference.progress import shown
from pfbr.inference.refusal import refuse_without_posterior
from pfbr.inference.registry import as_method
from pfbr.inference.rows import RowReader
from pfbr.inference.session import Session
from pfbr.inference.streams import record_streams
from pfbr.inference.tables import FIRST, Ordered, elapsed
from pfbr.io.frames import Table
from pfbr.models.base import Model
from pfbr.models.unknowns import Unknowns

ROOM = 128  # rows kept are rounded up to powers of two times this: few compilations, whatever the longest stream


def run_streams(
    model: Model,
    table: Table,
    rows: Ordered,
    *,
    method: str | Method,
    key: int | jax.Array,
    num_particles: int,
    history: int,
    start: Any,
    time_unit: str | None,
    progress: bool = False,
    mesh: Mesh | None = None,
) -> StreamsTrace:
    """The posteriors after every row of every stream."""
    key, num_particles = checked_key(key), checked_num_particles(num_particles)
    read, _ = RowReader(model).read_stream(rows.observations, times=None, inputs=rows.inputs, clock=Clock())
    dt = elapsed(rows, table, start, time_unit)
    if dt is not None:
        read = Stream(read.observations, jnp.asarray(dt, jnp.result_type(float)), read.inputs, read.observed)
    longest = int(rows.lengths.max())
    chosen = as_method(method, model, history=history, rows=ROOM * 2 ** max(0, int(np.ceil(np.log2(longest / ROOM)))))
    with shown(len(rows.stream), progress):
        said = record_streams(key, chosen, model, read, rows.stream, num_particles, mesh)
    refuse_without_posterior(said.particles, said.info, lambda index: _in_words(table, rows, int(index[0])))
    info = said.info
    if info.log_predictive is not None:
        total = _within_streams(np.asarray(info.log_predictive, dtype=np.float64), rows.stream)
        info = eqx.tree_at(lambda i: i.log_evidence, info, total, is_leaf=lambda leaf: leaf is None)
    particles, info, parameters = taken(said.particles, info, said.parameters, np.argsort(rows.order))
    settings: dict[str, Any] = {
        "method": method,
        "num_particles": num_particles,
        "history": history,
        "time_unit": time_unit,
    }

    def again(number: int) -> Trace:
        """One stream by a session of its own, which can go on: the same particles, run once more."""
        mine = rows.stream == number
        times = None if rows.times is None else rows.times[mine]
        begin = times[0] if start == FIRST and times is not None else 0.0 if start == FIRST else start
        session = Session(model, key=jax.random.fold_in(key, number), start=begin, **settings)
        inputs = jax.tree.map(lambda leaf: leaf[mine], rows.inputs)
        return session.update_many(rows.observations[mine], times=times, inputs=inputs)

    trace = StreamsTrace.of(Trace(particles, info, Unknowns.of(model), parameters), table, rows)
    trace.times, trace._again = table.times, again
    return trace


def _within_streams(values: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Running sums that begin anew with each stream."""
    begins = np.flatnonzero(np.append(True, stream[1:] != stream[:-1]))
    return np.concatenate([np.cumsum(part) for part in np.split(values, begins[1:])])


def _in_words(table: Table, rows: Ordered, index: int) -> str:
    return f"{table.where(int(rows.order[index]))} (stream {rows.ids[rows.stream[index]]!r})"
