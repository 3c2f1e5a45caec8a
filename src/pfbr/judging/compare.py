"""Methods side by side on a user's model and streams: one call, records in a directory, a row for each method."""

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import ArrayLike

from pfbr import baselines
from pfbr.checks import checked_model, checked_observations
from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.io.records import Measurement, Records
from pfbr.judging import evaluate as evaluation
from pfbr.metrics.nuts import nuts
from pfbr.models.base import Model


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
    observations: ArrayLike,
    methods: Sequence[str],
    num_particles: int,
    out: str | os.PathLike,
    *,
    own: Mapping[str, Method] | None = None,
    seed: int = 0,
    minutes: float = 2.0,
    truth: str = "auto",
    truth_draws: int = 2000,
    progress: evaluation.Progress | None = None,
) -> list[Row]:
    """Run rivals by their names, and methods of your `own`, on one stream (T, …) or many (S, T, …).

    Rivals that can be trained are trained for `minutes`. `truth`: "auto" takes a formula or a grid where there is one,
    "nuts" takes long Markov chains where there is none (minutes per stream), "none" goes without. Called again with the
    same settings, it goes on where it stopped.
    """
    if truth not in ("auto", "nuts", "none"):
        raise InputError(f"`truth` must be auto, nuts or none; got {truth!r}.")
    checked_model(model)
    array, many = checked_observations(model, observations)
    streams = array if many else array[None]
    chosen: dict[str, Method | None] = {**(own or {}), **dict.fromkeys(methods)}
    if not chosen:
        raise InputError(f"no method to compare; the rivals are {', '.join(baselines.names())}.")
    for name in chosen:  # refuse before the work, not after half of it
        if chosen[name] is None:
            baselines.make(name, model)
        elif (reason := chosen[name].unsupported(model)) is not None:  # type: ignore[union-attr]
            raise InputError(f"{name} cannot do {type(model).__name__}: {reason}")
    settings = {
        "model": type(model).__name__,
        "streams": list(streams.shape),
        "checksum": float(np.asarray(streams, dtype=np.float64).sum()),
        "num_particles": num_particles,
        "seed": seed,
        "truth": truth,
        "truth_draws": truth_draws,
    }
    records = Records(out, settings)
    truth_key, train_key, run_key = jax.random.split(jax.random.key(seed), 3)
    finished = {m.method for m in records.measurements() if m.metric == evaluation.TRAINING}
    seconds: dict[str, float] = {}
    ready: dict[str, Method] = {}
    for i, (name, method) in enumerate(chosen.items()):
        train = baselines.REGISTRY[name].train if method is None else None
        if train is not None and name not in finished:
            if progress is not None:
                progress(f"training {name}", i, len(chosen))
            started = time.process_time()
            ready[name] = train(jax.random.fold_in(train_key, i), model, minutes)
            seconds[name] = time.process_time() - started
        else:
            ready[name] = baselines.make(name, model) if method is None else method
    reference = None
    if set(ready) - finished and truth != "none":
        reference = evaluation.reference(truth_key, model, jnp.asarray(streams), num_particles, truth_draws)
        if reference is None and truth == "nuts":
            reference = _reference_by_nuts(truth_key, model, streams, num_particles, truth_draws, progress)
    measured = evaluation.evaluate(
        run_key,
        ready,
        model,
        jnp.asarray(streams),
        num_particles=num_particles,
        truth=reference,
        seed=seed,
        training_seconds=seconds,
        records=records,
        progress=progress,
    )
    return rows(measured, list(ready))


def _reference_by_nuts(key, model, streams, num_particles, truth_draws, progress) -> evaluation.Reference:
    chains = 4
    per_chain = -(-(truth_draws + num_particles) // chains)
    truths = []
    for s, stream in enumerate(streams):
        if progress is not None:
            progress("NUTS for the truth", s, len(streams))
        truths.append(nuts(jax.random.fold_in(key, s), model, stream, num_draws=per_chain, chains=chains))
    return evaluation.reference_from(key, truths, num_particles, truth_draws)


def rows(measured: Sequence[Measurement], names: Sequence[str]) -> list[Row]:
    """The measurements of a run as one row a method, best first where the truth is known."""

    whole = {(m.method, m.metric): m for m in measured if m.stage is None}

    def one(name: str) -> Row:
        above = whole.get((name, evaluation.ABOVE))
        return Row(
            method=name,
            above_exact=None if above is None else above.value,
            above_exact_error=None if above is None else above.error,
            predictive=whole[name, evaluation.PREDICTIVE].value if (name, evaluation.PREDICTIVE) in whole else np.nan,
            seconds_per_update=whole[name, evaluation.SECONDS].value,
            seconds_of_training=whole[name, evaluation.TRAINING].value,
            bytes_of_memory=whole[name, evaluation.MEMORY].value,
        )

    table = [one(name) for name in names]
    return sorted(table, key=lambda r: r.predictive if r.above_exact is None else r.above_exact)
