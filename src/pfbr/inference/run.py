"""A whole stream, or many at once, in one compiled call."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from pfbr.checks import checked_key, checked_num_particles
from pfbr.inference.info import Info
from pfbr.inference.method import Method, record, record_many
from pfbr.inference.posterior import Trace
from pfbr.inference.refusal import in_words, refuse_without_posterior
from pfbr.inference.registry import as_method
from pfbr.inference.rows import RowReader
from pfbr.inference.smoothing.smooth import check_moves, smooth_run
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.unknowns import Unknowns
from pfbr.typing import Numbers


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
    particles that a `Session` with the same key gives. With `smooth`, `trace.smoothed` has every state given all of the
    stream.
    """
    key, num_particles = checked_key(key), checked_num_particles(num_particles)
    model = checked_methods_of(checked_model(model))
    if smooth:
        check_moves(model)
    rows, many = RowReader(model).read_stream(
        observations, times=times, inputs=inputs, start=start, time_unit=time_unit
    )
    length = rows.observations.shape[1 if many else 0]
    chosen = as_method(method, model, history=history, rows=length)
    said = (record_many if many else record)(key, chosen, model, rows, num_particles)
    refuse_without_posterior(said.particles, said.info, in_words)
    smoothed = smooth_run(key, model, rows, said, many=many) if smooth else None
    return Trace(said.particles, _with_evidence(said.info), Unknowns.of(model), said.parameters, smoothed)


def _with_evidence(info: Info) -> Info:
    """The log evidence summed again in float64, which a long stream needs."""
    if info.log_predictive is None:
        return info
    total = np.cumsum(np.asarray(info.log_predictive, dtype=np.float64), axis=-1)
    return eqx.tree_at(lambda i: i.log_evidence, info, total, is_leaf=lambda leaf: leaf is None)
