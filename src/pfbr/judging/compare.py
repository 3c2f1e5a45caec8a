"""Methods side by side on a user's model and streams: one call, records in a directory, a row for each method."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from time import process_time
from typing import Any

import jax
import numpy as np

from pfbr import baselines
from pfbr.checks import check_memory, checked_amount, checked_count, checked_key, checked_num_particles
from pfbr.errors import InputError
from pfbr.inference.clock import Clock
from pfbr.inference.method import Method, Stream
from pfbr.inference.registry import as_method
from pfbr.inference.rows import RowReader
from pfbr.inference.tables import check_names, stacked
from pfbr.io.frames import is_frame, read_frame
from pfbr.io.records import Measurement, Records
from pfbr.judging.evaluate import (
    ABOVE,
    MEMORY,
    PREDICTIVE,
    SECONDS,
    TRAINING,
    Notify,
    TrueDraws,
    evaluate,
    true_draws,
    true_draws_from,
)
from pfbr.metrics.nuts import nuts
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.typing import Numbers

TRUTHS = ("auto", "nuts", "none")
CHAINS = 4


@dataclasses.dataclass(frozen=True)
class Row:
    """A method's line in the table: means over stages and streams."""

    method: str
    above_exact: float | None  # nats above as many exact draws; None where the truth is unknown
    above_exact_error: float | None  # standard error over streams; None where there is only one
    predictive: float  # −log density of the next observation
    seconds_per_update: float
    seconds_of_training: float
    bytes_of_memory: float


def compare(
    model: Model,
    observations: Numbers,
    methods: Sequence[str] | Mapping[str, str | Method],
    *,
    times: Any = None,
    inputs: Any = None,
    key: int | jax.Array = 0,
    num_particles: int = 256,
    history: int = 4096,
    start: Any = 0.0,
    time_unit: str | None = None,
    out: str | os.PathLike | None = None,
    minutes: float = 2.0,
    truth: str = "auto",
    truth_draws: int = 2000,
    progress: Notify | None = None,
    by: str | None = None,
    time: str | None = None,
    observation: str | Sequence[str] | None = None,
) -> list[Row]:
    """Run methods on one stream (T, …) or many (S, T, …); NaN stands for what was not observed. Of a frame (pandas,
    polars) `by`, `time`, `observation` and `inputs` name columns; its streams must be equally long.

    `methods` are names, as everywhere, or names of your own with the method of each. Baselines that can be trained are
    trained for `minutes`. `truth`: "auto" takes a formula or a grid where there is one, "nuts" takes long Markov chains
    where there is none (minutes per stream), "none" goes without. Records go to the directory `out`; called again with
    the same settings, it goes on where it stopped.
    """
    if truth not in TRUTHS:
        raise InputError(f"`truth` must be one of {', '.join(TRUTHS)}; got {truth!r}.")
    if isinstance(methods, str):
        raise InputError(f"`methods` must be a list of names, or a dict; got {methods!r}. Write [{methods!r}].")
    checked_amount("minutes", minutes)
    checked_count("truth_draws", truth_draws, least=1)
    num_particles, seed = checked_num_particles(num_particles), int(key) if isinstance(key, int | np.integer) else None
    key = checked_key(key)
    model = checked_methods_of(checked_model(model))
    check_names(observations, times, by=by, time=time, observation=observation)
    if is_frame(observations):
        table = read_frame(observations, by=by, time=time, observation=observation, inputs=inputs)
        observations, times, inputs = stacked(model, table, start, time_unit)
        start, time_unit = 0.0, None  # times are elapsed ones now
    chosen = dict(methods) if isinstance(methods, Mapping) else {name: name for name in methods}
    if not chosen:
        raise InputError(f"no method to compare; the baselines are {', '.join(baselines.names())}.")
    streams, many = RowReader(model).read_stream(
        observations, times=times, inputs=inputs, clock=Clock(start, time_unit)
    )
    streams = streams if many else jax.tree.map(lambda leaf: leaf[None], streams)
    length, stages = streams.observations.shape[1], streams.observations.shape[0] * streams.observations.shape[1]
    checked_num_particles(num_particles, dim=int(model.dim), sets=stages)
    check_memory(f"`truth_draws` = {truth_draws}", 4 * truth_draws * stages * int(model.dim), "Fewer draws are enough.")
    # all are made before the work, so that one that cannot do the model is refused at once
    ready = {name: as_method(method, model, history=history, rows=length) for name, method in chosen.items()}
    settings = {
        "model": type(model).__name__,
        "streams": list(streams.observations.shape),
        "checksum": [float(np.asarray(leaf, dtype=np.float64).sum()) for leaf in jax.tree.leaves(streams)],
        "num_particles": num_particles,
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "truth": truth,
        "truth_draws": truth_draws,
    }
    records = None if out is None else Records(out, settings)
    truth_key, train_key, run_key = jax.random.split(key, 3)
    measured = [] if records is None else records.measurements()
    left = [name for name in chosen if name not in {m.method for m in measured if m.metric == TRAINING}]
    seconds: dict[str, float] = {}
    for i, name in enumerate(chosen):
        train = _training_of(chosen[name])
        if train is not None and name in left:
            if progress is not None:
                progress(f"training {name}", i, len(chosen))
            started = process_time()
            ready[name] = train(jax.random.fold_in(train_key, i), model, minutes)
            seconds[name] = process_time() - started
    known = _truth(truth, truth_key, model, streams, num_particles, truth_draws, progress) if left else None
    measured = evaluate(
        model,
        streams,
        ready,
        key=run_key,
        num_particles=num_particles,
        truth=known,
        seed=seed,
        training_seconds=seconds,
        records=records,
        progress=progress,
    )
    return rows(measured, list(ready))


def _training_of(method: str | Method):
    """How a baseline is trained; None for what needs no training."""
    known = baselines.REGISTRY.get(method) if isinstance(method, str) else None
    return None if known is None else known.train


def _truth(
    how: str, key, model: Model, streams: Stream, num_particles: int, num_draws: int, progress: Notify | None
) -> TrueDraws | None:
    if how == "none":
        return None
    drawn = true_draws(model, streams, num_particles, key=key, num_draws=num_draws)
    if drawn is not None or how == "auto":
        return drawn
    if any(part is not None for part in (streams.dt, streams.inputs, streams.observed)):
        raise InputError(
            'truth="nuts" is for streams without times, inputs and missing values; use truth="auto" for these.'
        )
    truths = []
    for s, observations in enumerate(streams.observations):
        if progress is not None:
            progress("NUTS for the truth", s, len(streams.observations))
        per_chain = -(-(num_draws + num_particles) // CHAINS)
        truths.append(nuts(jax.random.fold_in(key, s), model, observations, num_draws=per_chain, chains=CHAINS))
    return true_draws_from(truths, num_particles, key=key, num_draws=num_draws)


def rows(measured: Sequence[Measurement], names: Sequence[str]) -> list[Row]:
    """The measurements of a run as one row a method, best first where the truth is known."""
    whole = {(m.method, m.metric): m for m in measured if m.stage is None}

    def one(name: str) -> Row:
        above = whole.get((name, ABOVE))
        return Row(
            method=name,
            above_exact=None if above is None else above.value,
            above_exact_error=None if above is None else above.error,
            predictive=whole[name, PREDICTIVE].value if (name, PREDICTIVE) in whole else np.nan,
            seconds_per_update=whole[name, SECONDS].value,
            seconds_of_training=whole[name, TRAINING].value,
            bytes_of_memory=whole[name, MEMORY].value,
        )

    table = [one(name) for name in names]
    return sorted(table, key=lambda r: r.predictive if r.above_exact is None else r.above_exact)
