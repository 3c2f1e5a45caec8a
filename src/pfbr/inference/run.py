"""A whole stream, or many at once, in one compiled call."""

from functools import partial
from typing import Any

import jax

from pfbr.checks import checked_key, checked_num_particles
from pfbr.errors import InputError
from pfbr.inference.catching_up import caught_up, row_at, times_of, with_evidence
from pfbr.inference.clock import Clock
from pfbr.inference.method import Method, record, record_many
from pfbr.inference.posterior import Trace
from pfbr.inference.refusal import in_words, refuse_without_posterior
from pfbr.inference.registry import as_method
from pfbr.inference.replay import Position
from pfbr.inference.rows import RowReader
from pfbr.inference.scoring import score_recorded
from pfbr.inference.session import Session, resumed
from pfbr.inference.smoothing.smooth import check_moves, smooth_run
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.unknowns import Unknowns
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
) -> Trace:
    """The posteriors after every observation of a stream (T, …), or of many (S, T, …).

    NaN stands for what was not observed. `times` and `inputs` lead as the observations do. A single stream gives the
    particles that a `Session` with the same key gives, and `trace.session` goes on live from its end. With `smooth`,
    `trace.smoothed` has every state given all of the stream.
    """
    key, num_particles = checked_key(key), checked_num_particles(num_particles)
    model = checked_methods_of(checked_model(model))
    if smooth:
        check_moves(model)
    reader, clock = RowReader(model), Clock(start, time_unit)
    rows, many = reader.read_stream(observations, times=times, inputs=inputs, clock=clock)
    length = rows.observations.shape[1 if many else 0]
    chosen = as_method(method, model, history=history, rows=length)
    said = record_many(key, chosen, model, rows, num_particles) if many else None
    said = said or record(key, chosen, model, rows, num_particles, UNDO)
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
        return resumed(fresh, reader, ended, row_at(rows, 0))

    info = with_evidence(said.info, 0.0)
    return Trace(said.particles, info, Unknowns.of(model), said.parameters, smoothed, scored=scored, session=session)
