"""Predict a batch, see its labels, update: accuracy, log predictive score and calibration of a method on many tasks."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.method import Method
from pfbr.io.records import Measurement
from pfbr.metrics.prequential import log_predictive
from pfbr.models.minibatch import MiniBatch

ACCURACY, SCORE = "average online accuracy", "average online log score"
DEVIATION = "standard deviation of the average online accuracy over tasks"
BATCH_ACCURACY, BATCH_SCORE = "accuracy on the next batch", "log score of the next batch"
FRESH_ACCURACY, FRESH_SCORE = "accuracy on other images", "log score on other images"
FORETOLD, OBSERVED, COUNT = "calibration: foretold", "calibration: observed", "calibration: images"
CALIBRATION_ERROR, SECONDS = "calibration error", "seconds per update"
BINS = 10


class Judged(NamedTuple):
    """S tasks of T batches of L images; stage m is after m updates, before batch m + 1 is seen."""

    foretold: np.ndarray  # (S, T, L) log probability given to the label
    labels: np.ndarray  # (S, T, L)
    fresh: np.ndarray  # (S, T, 2): accuracy and −log probability on the other images


@eqx.filter_jit
def _follow(keys, method: Method, model: MiniBatch, streams, fresh, num_particles: int):
    def one(inputs):
        key, batches, others = inputs
        init_key, steps_key = jax.random.split(key)

        def advance(state, step):
            step_key, batch = step
            said = method.particles(state)
            foretold, aside = log_predictive(said, model, batch), log_predictive(said, model, others)
            measured = jnp.stack([jnp.mean(aside > jnp.log(0.5)), -jnp.mean(aside)])
            return method.update(step_key, model, state, batch)[0], (foretold, measured)

        state = method.init(init_key, model, num_particles)
        return jax.lax.scan(advance, state, (jax.random.split(steps_key, batches.shape[0]), batches))[1]

    return jax.lax.map(one, (keys, streams, fresh))


def judge(keys, method: Method, model: MiniBatch, streams, fresh, num_particles: int) -> Judged:
    """Run a method on every task. The same keys give every method the same first particles."""
    numbers = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, method)
    foretold, aside = _follow(keys, numbers, model, streams, fresh, num_particles)
    return Judged(np.asarray(foretold), np.asarray(streams[..., -1]), np.asarray(aside))


def measurements(name: str, judged: Judged, num_particles: int, seed: int) -> list[Measurement]:
    """All that is drawn and told of a method. Averages over stages begin after the first update, at stage 1."""
    right = np.mean(judged.foretold > np.log(0.5), axis=2)  # (S, T)
    score = -np.mean(judged.foretold, axis=2)
    num_tasks, num_stages = right.shape
    common = {"num_particles": num_particles, "num_sequences": num_tasks, "seed": seed}
    found: list[Measurement] = []

    def add(metric: str, stage: int | None, values: np.ndarray) -> None:
        error = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
        found.append(Measurement(name, metric, stage, float(np.mean(values)), error, **common))

    for stage in range(num_stages):
        seen = slice(0, 1) if stage == 0 else slice(1, stage + 1)
        average = right[:, seen].mean(axis=1)
        add(ACCURACY, stage, average)
        if num_tasks > 1:
            found.append(Measurement(name, DEVIATION, stage, float(average.std(ddof=1)), None, **common))
        add(SCORE, stage, score[:, seen].mean(axis=1))
        add(BATCH_ACCURACY, stage, right[:, stage])
        add(BATCH_SCORE, stage, score[:, stage])
        add(FRESH_ACCURACY, stage, judged.fresh[:, stage, 0])
        add(FRESH_SCORE, stage, judged.fresh[:, stage, 1])
    add(ACCURACY, None, right[:, 1:].mean(axis=1))
    add(SCORE, None, score[:, 1:].mean(axis=1))
    add(FRESH_ACCURACY, None, judged.fresh[:, 1:, 0].mean(axis=1))
    add(FRESH_SCORE, None, judged.fresh[:, 1:, 1].mean(axis=1))
    return found + _calibration(name, judged, common)


def _calibration(name: str, judged: Judged, common: dict) -> list[Measurement]:
    """Of the images that were called an eight with probability p, after the first update: how many are eights?"""
    of_label, labels = np.exp(judged.foretold[:, 1:]).ravel(), judged.labels[:, 1:].ravel()
    known = np.isfinite(of_label)  # what a method that blew up foretells is in no bin
    of_label, labels = of_label[known], labels[known]
    eight = np.where(labels == 1, of_label, 1 - of_label)
    bins = np.minimum((eight * BINS).astype(int), BINS - 1)
    found, off = [], 0.0
    for b in range(BINS):
        inside = bins == b
        count = int(np.sum(inside))
        found.append(Measurement(name, COUNT, b, float(count), None, **common))
        if count:
            foretold, observed = float(np.mean(eight[inside])), float(np.mean(labels[inside]))
            off += abs(foretold - observed) * count / len(bins)
            found.append(Measurement(name, FORETOLD, b, foretold, None, **common))
            found.append(Measurement(name, OBSERVED, b, observed, (observed * (1 - observed) / count) ** 0.5, **common))
    return [*found, Measurement(name, CALIBRATION_ERROR, None, off, None, **common)]


def worst_starts(keys, method: Method, model: MiniBatch, stream, num: int, num_particles: int):
    """The `num` keys whose first particles prequential the first batch of a stream worst, and their accuracy there."""

    @eqx.filter_jit
    def first(key):
        state = method.init(jax.random.split(key)[0], model, num_particles)
        return jnp.mean(log_predictive(method.particles(state), model, stream[0]) > jnp.log(0.5))

    accuracy = np.asarray(jax.lax.map(first, keys))
    chosen = np.argsort(accuracy, kind="stable")[:num]
    return keys[chosen], accuracy[chosen]


def choose(
    keys, candidates: Sequence[Method], model: MiniBatch, streams, num_particles: int
) -> tuple[int, list[float]]:
    """The candidate with the best average online log score on streams kept for tuning, and the score of each."""
    nothing = streams[:, 0, :1]
    scores = []
    for candidate in candidates:
        score = -judge(keys, candidate, model, streams, nothing, num_particles).foretold[:, 1:].mean()
        scores.append(float(score) if np.isfinite(score) else float("inf"))
    return int(np.argmin(scores)), scores
