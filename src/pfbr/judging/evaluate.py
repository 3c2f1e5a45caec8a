"""Methods × streams → measurements: score at every stage, beside exact sampling, with what it cost."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.inference.method import Given, Method, Stream, advance, record, step_key
from pfbr.io.records import Measurement, Records
from pfbr.judging.stages import as_stream, begun, rows_of, without_density
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import GaussianTruth, Truth, exact, is_linear_gaussian
from pfbr.models.base import Model, StateSpaceModel, has_parameters
from pfbr.particles.particles import Particles, equally_weighted, weighted_mean
from pfbr.typing import Key, Scalar

SCORE, ABOVE, PREDICTIVE, MEAN_ERROR = "cross entropy", "above exact", "predictive", "mean error"
SECONDS, TRAINING, MEMORY = "seconds per update", "seconds of training", "bytes of memory"
TIMED_ROWS, TIMED_RUNS = 10, 5
Notify = Callable[[str, int, int], None]  # hears what is being done, and how many of how many are done


class TrueDraws(NamedTuple):
    """Draws of the true posteriors of S streams after T stages, and as many exact draws as a method has particles."""

    draws: Float[Array, "s t m d"]
    exact: Float[Array, "s t n d"]
    truth: GaussianTruth | None = None  # by formula, where there is one


Metric = Callable[[Key, Particles, TrueDraws], Scalar]  # of one stage of one stream


def true_draws(
    model: Model,
    streams: Stream | Float[Array, "s t ..."],
    num_particles: int,
    *,
    key: Key,
    num_draws: int = 2000,
) -> TrueDraws | None:
    """Draws from the exact posteriors, or None where no formula or grid gives them."""
    on_a_grid = int(model.dim) == 2 and not isinstance(model, StateSpaceModel)
    if has_parameters(model) or not (on_a_grid or is_linear_gaussian(model)):
        return None
    return _true_draws(model, as_stream(streams), num_particles, key, num_draws)


@eqx.filter_jit
def _true_draws(model: Model, streams: Stream, num_particles: int, key: Key, num_draws: int) -> TrueDraws:
    """One stream after the other: a grid for all stages of all streams would not fit into memory."""

    def one(inputs):
        stream_key, stream = inputs
        truth = exact(model, stream)

        def stage(indexed):
            stage_key, at_stage = indexed
            draw_key, exact_key = jax.random.split(stage_key)
            return at_stage.sample(draw_key, num_draws), at_stage.sample(exact_key, num_particles)

        drawn = jax.lax.map(stage, (jax.random.split(stream_key, stream.observations.shape[0]), truth))
        return *drawn, truth if isinstance(truth, GaussianTruth) else None

    return TrueDraws(*jax.lax.map(one, (jax.random.split(key, streams.observations.shape[0]), streams)))


def true_draws_from(truths: Sequence[Truth], num_particles: int, *, key: Key, num_draws: int = 2000) -> TrueDraws:
    """The same from truths made elsewhere (long Markov chains), one for each stream, stages along their first axis."""

    def one(stream_key, truth):
        def stage(stage_key, at_stage):
            both = at_stage.sample(stage_key, num_draws + num_particles)  # no draw is used for both
            return both[:num_draws], both[num_draws:]

        length = jax.tree.leaves(truth)[0].shape[0]
        return jax.vmap(stage)(jax.random.split(stream_key, length), truth)

    parts = [one(k, truth) for k, truth in zip(jax.random.split(key, len(truths)), truths, strict=True)]
    draws, best = (jnp.stack(part) for part in zip(*parts, strict=True))
    return TrueDraws(draws, best)


def evaluate(
    model: Model,
    streams: Stream | Float[Array, "s t ..."],
    methods: Mapping[str, Method],
    *,
    key: Key,
    num_particles: int,
    truth: TrueDraws | None,
    seed: int | None = None,
    metrics: Mapping[str, Metric] | None = None,
    training_seconds: Mapping[str, float] | None = None,
    costs: bool = True,
    records: Records | None = None,
    progress: Notify | None = None,
) -> list[Measurement]:
    """Measure each method, as it is, on the same streams; one that `records` already hold is not run again.

    With a truth, "above exact" is the cross entropy of the method minus that of as many exact draws, on the same true
    draws. Without one, there is the predictive score alone, −log of the mean likelihood of the *next* observation.
    `metrics` are further ones that need a truth. Each is given for every stage, and, with no stage, as the mean over
    all stages with its standard error over streams. Without `costs`, time and memory are not measured, which saves the
    compilation of a single update.
    """
    streams = as_stream(streams)
    if streams.observations.ndim < 2:
        raise InputError(f"`streams` must have shape (S, T, …), streams first; got {streams.observations.shape}.")
    done = records.measurements() if records is not None else []
    own = [m for m in done if m.seed == seed and m.num_particles == num_particles]
    finished = {m.method for m in own if m.metric == TRAINING}  # the last line of each method
    results = [m for m in own if m.method in finished]
    best = None if truth is None or set(methods) <= finished else _exact_scores(truth)
    for i, (name, method) in enumerate(methods.items()):
        if progress is not None:
            progress(name, i, len(methods))
        if name in finished:
            continue
        scores = _scores(key, method, model, streams, num_particles, truth, best, dict(metrics or {}))
        first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], streams)
        cost = measure_cost(key, method, model, first, num_particles) if costs else {}
        cost[TRAINING] = (training_seconds or {}).get(name, 0.0)
        common = {"num_particles": num_particles, "num_sequences": len(streams.observations), "seed": seed}
        new = [
            Measurement(name, metric, stage + 1, float(np.mean(column)), standard_error(column), **common)
            for metric, values in scores.items()
            for stage, column in enumerate(values.T)
        ]
        new += [
            Measurement(name, metric, None, float(np.mean(values)), standard_error(values.mean(axis=1)), **common)
            for metric, values in scores.items()
            if values.size  # of a single observation there is no predictive score
        ]
        new += [Measurement(name, metric, None, float(value), None, **common) for metric, value in cost.items()]
        if records is not None:
            records.add(new)
        results += new
    if progress is not None:
        progress("done", len(methods), len(methods))
    return results


def standard_error(values: np.ndarray) -> float | None:
    """Of the mean of independent values; None where there is only one."""
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


@jax.jit
def _exact_scores(truth: TrueDraws) -> Float[Array, "s t"]:
    """What the exact draws score at every stage of every stream, the same for all methods."""

    def stage(inputs):
        exact_points, draws = inputs
        return cross_entropy(equally_weighted(exact_points), draws)

    return jax.lax.map(lambda stream: jax.lax.map(stage, stream), (truth.exact, truth.draws))


def _scores(key, method, model, streams: Stream, num_particles, truth, best, metrics) -> dict[str, np.ndarray]:
    """Metric -> (S, T). One stream at a time: memory stays small, and it compiles once."""
    lines = []
    everything = jax.tree.map(np.asarray, (streams, truth, best))  # NumPy's slices need no compilation
    for s in range(len(streams.observations)):
        stream_key = jax.random.fold_in(key, s)
        stream, *at_stages = jax.tree.map(lambda leaf, s=s: leaf[s], everything)
        said = record(stream_key, method, model, stream, num_particles)
        plain = without_density(said.particles)
        lines.append(_measure(model, metrics, stream_key, plain, said.parameters, stream, *at_stages))
    scores = {name: np.stack([np.asarray(line[name]) for line in lines]) for name in lines[0]}
    scores[PREDICTIVE] = scores[PREDICTIVE][:, :-1]  # after the last one there is no next observation
    return scores


@eqx.filter_jit
def _measure(model, metrics: dict[str, Metric], stream_key, said: Particles, parameters, stream: Stream, truth, best):
    """All metrics of the particles that a method left along one stream; compiled once for all methods."""

    def stage(inputs):
        particles, params, following, true, exact_score, stage_key = inputs
        points = particles.points
        if isinstance(model, StateSpaceModel):  # the unknown moves before it is seen again
            keys = jax.random.split(stage_key, points.shape[0])
            points = jax.vmap(lambda k, x, p: following.bound(model, p).sample_transition(k, x))(keys, points, params)
        fit = following.log_likelihoods(model, points, params)
        scores = {PREDICTIVE: -jax.nn.logsumexp(particles.log_weights + fit)}
        if true is not None:
            scores[SCORE] = cross_entropy(particles, true.draws)
            scores[ABOVE] = scores[SCORE] - exact_score
            scores[MEAN_ERROR] = jnp.linalg.norm(weighted_mean(particles) - jnp.mean(true.draws, axis=0))
            scores |= {name: metric(stage_key, particles, true) for name, metric in metrics.items()}
        return scores

    following = jax.tree.map(lambda leaf: jnp.concatenate([leaf[1:], leaf[-1:]]), rows_of(stream))
    keys = jax.random.split(jax.random.fold_in(stream_key, 1), stream.observations.shape[0])
    return jax.lax.map(stage, (said, parameters, following, truth, best, keys))


def measure_cost(
    key: Key, method: Method, model: Model, stream: Stream | Float[Array, "t ..."], num_particles: int
) -> dict[str, float]:
    """CPU seconds of one update once compiled (the best of five runs), and bytes that it holds while running."""
    rows = jax.tree.map(np.asarray, rows_of(stream))
    some = [jax.tree.map(lambda leaf, i=i: leaf[i], rows) for i in range(min(TIMED_ROWS, len(rows.observations)))]
    first = begun(key, method, model, as_stream(stream), num_particles)
    compiled = _updated.lower(key, method, model, first, some[0]).compile()  # type: ignore[attr-defined]
    analysis = compiled.compiled.memory_analysis()
    memory = analysis.temp_size_in_bytes + analysis.argument_size_in_bytes + analysis.output_size_in_bytes
    jax.block_until_ready(compiled(key, method, model, first, some[0]))
    keys = [step_key(key, i + 1) for i in range(len(some))]
    seconds = []
    for _ in range(TIMED_RUNS):
        state, started = first, time.process_time()
        for row_key, row in zip(keys, some, strict=True):
            state = compiled(row_key, method, model, state, row)
        jax.block_until_ready(state)
        seconds.append((time.process_time() - started) / len(some))
    return {SECONDS: min(seconds), MEMORY: float(memory)}


@eqx.filter_jit
def _updated(key, method, model, state, row):
    given = Given(row.dt, row.inputs, row.observed)
    return advance(key, method, model, state, row.observations, given)[0]
