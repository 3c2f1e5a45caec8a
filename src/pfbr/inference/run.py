"""A whole stream, or many at once, in one compiled call."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax

from pfbr.checks import checked_key, checked_num_particles
from pfbr.errors import InputError
from pfbr.inference.catching_up import caught_up, row_at, times_of, with_evidence, with_room
from pfbr.inference.clock import Clock
from pfbr.inference.frame_trace import FrameTrace
from pfbr.inference.method import Method, record, record_many
from pfbr.inference.method import start as first_state
from pfbr.inference.posterior import Trace
from pfbr.inference.progress import shown
from pfbr.inference.refusal import in_words, refuse_without_posterior
from pfbr.inference.registry import as_method
from pfbr.inference.replay import Position, Replayed
from pfbr.inference.rows import Row, RowReader
from pfbr.inference.run_on_mesh import record_on_mesh
from pfbr.inference.run_streams import run_streams
from pfbr.inference.scoring import score_recorded
from pfbr.inference.session import Session
from pfbr.inference.smoothing.smooth import check_moves, smooth_run
from pfbr.inference.tables import check_names, ordered, single_start
from pfbr.io.frames import Table, is_frame, read_frame
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.unknowns import Unknowns
from pfbr.sharding import checked_mesh
from pfbr.typing import Numbers

UNDO = 8  # states kept of a single stream, for the session that goes on from it


def run(
    model: Model,
    observations: Numbers,
    *,
    times: Any = None,
    inputs: Any = None,
    method: str | Method = "auto",
    key: int | jax.Array = 0,
    num_particles: int = 256,
    history: int = 4096,
    start: Any = 0.0,
    time_unit: str | None = None,
    smooth: bool = False,
    progress: bool = False,
    by: str | None = None,
    time: str | None = None,
    observation: str | Sequence[str] | None = None,
    mesh: Any = None,
) -> Trace:
    """The posteriors after every observation of a stream (T, …), or of many (S, T, …), or of the rows of a frame.

    NaN stands for what was not observed. `times` and `inputs` lead as the observations do. A single stream gives the
    particles that a `Session` with the same key gives, and `trace.session` goes on live from its end. With `smooth`,
    `trace.smoothed` has every state given all of the stream. With `progress`, a bar shows how far it is. `mesh`, of
    JAX's devices or "all", divides many streams among devices.

    Of a frame (pandas, polars, pyarrow) `observation`, `inputs`, `time` and `by` name columns; `by` tells streams
    apart, each with a posterior of its own. Rows are taken in order of time within each stream; `start="first"` puts
    the prior at the first time of each. `trace.to_frame()` has one row for each row of the frame.
    """
    check_names(observations, times, by=by, time=time, observation=observation)
    if is_frame(observations):
        table = read_frame(observations, by=by, time=time, observation=observation, inputs=inputs)
        settings: dict[str, Any] = {"method": method, "key": key, "num_particles": num_particles, "history": history}
        settings |= {"time_unit": time_unit, "mesh": mesh}
        return run_table(model, table, start=start, smooth=smooth, progress=progress, **settings)
    key, num_particles = checked_key(key), checked_num_particles(num_particles)
    model, mesh = checked_methods_of(checked_model(model)), checked_mesh(mesh)
    dim = int(model.dim)
    if smooth:
        check_moves(model)
    reader, clock = RowReader(model), Clock(start, time_unit)
    rows, many = reader.read_stream(observations, times=times, inputs=inputs, clock=clock)
    length = rows.observations.shape[1 if many else 0]
    checked_num_particles(num_particles, dim=dim, sets=length * (rows.observations.shape[0] if many else 1))
    chosen = as_method(method, model, history=history, rows=length)
    if mesh is not None and not many:
        raise InputError("`mesh` divides many streams, and this is one, (T, …): leave it out.")
    with shown(length, progress and mesh is None):
        if mesh is not None:
            said = record_on_mesh(mesh, key, chosen, model, rows, num_particles)
        elif many:
            said = record_many(key, chosen, model, rows, num_particles, progress)
        else:
            said = record(key, chosen, model, rows, num_particles, UNDO, progress)
    refuse_without_posterior(said.particles, said.info, in_words)
    smoothed = smooth_run(key, model, rows, said, many=many) if smooth else None
    scored = partial(score_recorded, key, model, said, rows, stage=0, now=0.0)

    def session() -> Session:
        if many:
            raise InputError("this trace holds several streams, and a session is one: run one stream, or use a panel.")
        begin = Position(said.last, 0, 0.0, 0.0)
        ended = caught_up(said, rows, times_of(clock, times, length), times is not None, begin)
        settings: dict[str, Any] = {"method": method, "history": history, "start": start, "time_unit": time_unit}
        fresh = Session(model, key=key, num_particles=num_particles, undo=UNDO, **settings)
        return _resumed(fresh, reader, ended, row_at(rows, 0))

    info = with_evidence(said.info, 0.0)
    trace = Trace(said.particles, info, Unknowns.of(model), said.parameters, smoothed, scored=scored, session=session)
    trace.times = times
    return trace


def _resumed(session: Session, reader: RowReader, recorded: Replayed, row: Row) -> Session:
    """A fresh session that goes on where a recorded stream of its own model and key has ended."""
    like = eqx.filter_eval_shape(first_state, *session._beginning(row))
    session._rows, session._example = reader, row
    session._adopt(with_room(recorded, like))
    return session


def run_table(
    model: Model,
    table: Table,
    *,
    start: Any = 0.0,
    smooth: bool = False,
    progress: bool = False,
    mesh: Any = None,
    **settings: Any,
) -> FrameTrace:
    """The rows of a table, in order of time: one stream as any other, many in one scan."""
    rows = ordered(checked_methods_of(checked_model(model)), table)
    if table.streams is None:
        if mesh is not None:
            raise InputError(
                "`mesh` divides many streams, and this frame is one: name the column `by=`, or leave it out."
            )
        start = single_start(rows, table, start)
        own: dict[str, Any] = {"times": rows.times, "inputs": rows.inputs, "start": start}
        trace = run(model, rows.observations, smooth=smooth, progress=progress, **own, **settings)
        return FrameTrace.of(trace, table, rows)
    if smooth:
        raise InputError("`smooth` is for one stream: run the streams of a frame one by one.")
    return run_streams(model, table, rows, start=start, progress=progress, mesh=checked_mesh(mesh), **settings)
