"""Methods × streams → measurements: score at every stage, beside exact sampling, with what it cost."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.inference.method import Method, record
from pfbr.io.records import Measurement, Records
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import GaussianTruth, Truth, exact
from pfbr.models.base import Model, StateSpaceModel
from pfbr.particles.particles import Particles, equally_weighted, weighted_mean
from pfbr.typing import Key, Observations, Scalar

SCORE, ABOVE, PREDICTIVE, MEAN_ERROR = "cross entropy", "above exact", "predictive", "mean error"
SECONDS, TRAINING, MEMORY = "seconds per update", "seconds of training", "bytes of memory"
EXACT = "exact"
Progress = Callable[[str, int, int], None]  # what is being done, how many of how many are done


class Reference(NamedTuple):
    """Draws of the true posteriors of S streams after T stages, and as many exact draws as a method has particles."""

    draws: Float[Array, "s t m d"]
    exact: Float[Array, "s t n d"]
    truth: GaussianTruth | None = None  # by formula, where there is one


Judge = Callable[[Key, Particles, Reference], Scalar]  # a further metric, of one stage of one stream


def reference(key: Key, model: Model, streams: Float[Array, "s t ..."], num_particles: int, num_draws: int = 2000):
    """Draws from the exact posteriors, or None where no formula or grid gives them."""
    moving = isinstance(model, StateSpaceModel)
    if model.linear_gaussian() is None and (int(model.dim) != 2 or moving):
        return None

    @jax.jit
    def one(inputs):
        stream_key, observations = inputs
        truth = exact(model, observations)

        def stage(indexed):
            stage_key, at_stage = indexed
            draw_key, exact_key = jax.random.split(stage_key)
            return at_stage.sample(draw_key, num_draws), at_stage.sample(exact_key, num_particles)

        drawn = jax.lax.map(stage, (jax.random.split(stream_key, observations.shape[0]), truth))
        return *drawn, truth if isinstance(truth, GaussianTruth) else None

    return Reference(*jax.lax.map(one, (jax.random.split(key, streams.shape[0]), jnp.asarray(streams))))


def reference_from(key: Key, truths: Sequence[Truth], num_particles: int, num_draws: int = 2000) -> Reference:
    """The same from truths made elsewhere (long Markov chains), one for each stream, stages along their first axis."""

    def one(stream_key, truth):
        def stage(stage_key, at_stage):
            both = at_stage.sample(stage_key, num_draws + num_particles)  # no draw is used for both
            return both[:num_draws], both[num_draws:]

        length = jax.tree.leaves(truth)[0].shape[0]
        return jax.vmap(stage)(jax.random.split(stream_key, length), truth)

    parts = [one(k, truth) for k, truth in zip(jax.random.split(key, len(truths)), truths, strict=True)]
    draws, best = (jnp.stack(part) for part in zip(*parts, strict=True))
    return Reference(draws, best)


def evaluate(
    key: Key,
    methods: Mapping[str, Method],
    model: Model,
    streams: Float[Array, "s t ..."],
    *,
    num_particles: int,
    truth: Reference | None,
    seed: int | None = None,
    judges: Mapping[str, Judge] | None = None,
    training_seconds: Mapping[str, float] | None = None,
    costs: bool = True,
    records: Records | None = None,
    progress: Progress | None = None,
) -> list[Measurement]:
    """Measure each method on the same streams; a method that `records` already hold is not run again.

    With a truth, "above exact" is the cross entropy of the method minus that of as many exact draws, on the same true
    draws. Without one, there is the predictive score alone, −log of the mean likelihood of the *next* observation.
    `judges` are further metrics that need a truth. Each metric is given for every stage, and, with no stage, as the
    mean over all stages with its standard error over streams. Without `costs`, time and memory are not measured, which
    saves the compilation of a single update.
    """
    streams = jnp.asarray(streams)
    if streams.ndim < 2:
        raise InputError(f"`streams` must have shape (S, T, …), streams first; got {streams.shape}.")
    done = records.measurements() if records is not None else []
    own = [m for m in done if m.seed == seed and m.num_particles == num_particles]
    finished = {m.method for m in own if m.metric == TRAINING}  # the last line of each method
    results = [m for m in own if m.method in finished]
    judge = _judge_of(model, judges or {})
    best = None if truth is None or set(methods) <= finished else _exact_scores(truth)
    for i, (name, method) in enumerate(methods.items()):
        if progress is not None:
            progress(name, i, len(methods))
        if name in finished:
            continue
        scores = _score(key, method, model, streams, num_particles, truth, best, judge)
        cost = measure_cost(key, method, model, streams[0], num_particles) if costs else {}
        cost[TRAINING] = (training_seconds or {}).get(name, 0.0)
        common = {"num_particles": num_particles, "num_sequences": int(streams.shape[0]), "seed": seed}
        new = [
            Measurement(name, metric, stage + 1, float(np.mean(column)), _standard_error(column), **common)
            for metric, values in scores.items()
            for stage, column in enumerate(values.T)
        ]
        new += [
            Measurement(name, metric, None, float(np.mean(values)), _standard_error(values.mean(axis=1)), **common)
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


def _standard_error(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None


@jax.jit
def _exact_scores(truth: Reference) -> Float[Array, "s t"]:
    """What the exact draws score at every stage of every stream, the same for all methods."""

    def stage(inputs):
        exact_points, draws = inputs
        return cross_entropy(equally_weighted(exact_points), draws)

    return jax.lax.map(lambda stream: jax.lax.map(stage, stream), (truth.exact, truth.draws))


def _score(key, method, model, streams, num_particles, truth, best, judge) -> dict[str, np.ndarray]:
    """Metric -> (S, T). One stream at a time: memory stays small, and it compiles once."""
    rows = []
    for s, (stream_key, stream) in enumerate(zip(jax.random.split(key, streams.shape[0]), streams, strict=True)):
        said = record(stream_key, method, model, stream, num_particles).particles
        plain = Particles(said.points, said.log_weights)  # of one structure, so that all methods share one judge
        at_stages = jax.tree.map(lambda leaf, s=s: leaf[s], (truth, best))
        rows.append(judge(stream_key, plain, stream, *at_stages))
    scores = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    scores[PREDICTIVE] = scores[PREDICTIVE][:, :-1]  # after the last one there is no next observation
    return scores


def _judge_of(model: Model, judges: Mapping[str, Judge]):
    """What measures the particles that any method left along one stream; compiled once for all methods."""

    @jax.jit
    def one(stream_key, said, observations, at_stages, best_scores):
        def stage(inputs):
            particles, following, at_stage, best, move_key = inputs
            points = particles.points
            if isinstance(model, StateSpaceModel):  # the unknown moves before it is seen again
                points = jax.vmap(model.sample_transition)(jax.random.split(move_key, points.shape[0]), points)
            fit = jax.vmap(model.log_likelihood, (0, None))(points, following)
            scores = {PREDICTIVE: -jax.nn.logsumexp(particles.log_weights + fit)}
            if at_stage is not None:
                scores[SCORE] = cross_entropy(particles, at_stage.draws)
                scores[ABOVE] = scores[SCORE] - best
                off = weighted_mean(particles) - jnp.mean(at_stage.draws, axis=0)
                scores[MEAN_ERROR] = jnp.linalg.norm(off)
                scores |= {name: judge(move_key, particles, at_stage) for name, judge in judges.items()}
            return scores

        following = jnp.concatenate([observations[1:], observations[-1:]])
        move_keys = jax.random.split(jax.random.fold_in(stream_key, 1), observations.shape[0])
        return jax.lax.map(stage, (said, following, at_stages, best_scores, move_keys))

    return one


def measure_cost(key: Key, method: Method, model: Model, observations: Observations, num_particles: int):
    """CPU seconds of one update once compiled (the best of five streams), and bytes that it holds while running."""
    update: Any = eqx.filter_jit(method.update)
    state = eqx.filter_jit(method.init)(key, model, num_particles)
    compiled = update.lower(key, model, state, observations[0]).compile()
    analysis = compiled.compiled.memory_analysis()
    memory = analysis.temp_size_in_bytes + analysis.argument_size_in_bytes + analysis.output_size_in_bytes
    jax.block_until_ready(compiled(key, model, state, observations[0]))
    seconds = []
    for _ in range(5):
        at, started = state, time.process_time()
        for i, observation in enumerate(observations[:10]):
            at, _ = compiled(jax.random.fold_in(key, i), model, at, observation)
        jax.block_until_ready(at)
        seconds.append((time.process_time() - started) / min(10, len(observations)))
    return {SECONDS: min(seconds), MEMORY: float(memory)}
