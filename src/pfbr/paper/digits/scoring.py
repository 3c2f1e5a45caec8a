"""Predict a batch, see its labels, update: prequential accuracy, log score and calibration of a method."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.method import Method, start
from pfbr.io.records import Measurement
from pfbr.judging.evaluate import standard_error
from pfbr.judging.stages import at_every_stage
from pfbr.metrics.prequential import log_predictive
from pfbr.models.minibatch import MiniBatch

ACCURACY, SCORE = "prequential accuracy", "prequential log score"  # means over all predictions so far
DEVIATION = "standard deviation of the prequential accuracy over tasks"
BATCH_ACCURACY, BATCH_SCORE = "accuracy on the next batch", "log score of the next batch"
FRESH_ACCURACY, FRESH_SCORE = "accuracy on other images", "log score on other images"
PREDICTED, OBSERVED, COUNT = "calibration: predicted", "calibration: observed", "calibration: images"
CALIBRATION_ERROR = "calibration error"
BINS = 10


class Predictions(NamedTuple):
    """S tasks of T batches of L images; stage m is after m updates, before batch m + 1 is seen."""

    predicted: np.ndarray  # (S, T, L) log probability given to the label
    labels: np.ndarray  # (S, T, L)
    fresh: np.ndarray  # (S, T, 2): accuracy and −log probability on the other images


def predict(keys, method: Method, model: MiniBatch, streams, fresh, num_particles: int) -> Predictions:
    """Run a method on every task. The same keys give every method the same first particles."""
    predicted, aside = _predicted(keys, numbers_as_arrays(method), model, streams, fresh, num_particles)
    return Predictions(np.asarray(predicted), np.asarray(streams[..., -1]), np.asarray(aside))


@eqx.filter_jit
def _predicted(keys, method: Method, model: MiniBatch, streams, fresh, num_particles: int):
    def one(inputs):
        key, batches, others = inputs
        said = jax.tree.map(lambda leaf: leaf[:-1], at_every_stage(key, method, model, batches, num_particles))

        def look(before):
            particles, batch = before
            aside = log_predictive(particles, model, others)
            measured = jnp.stack([jnp.mean(aside > jnp.log(0.5)), -jnp.mean(aside)])
            return log_predictive(particles, model, batch), measured

        return jax.lax.map(look, (said, batches))

    return jax.lax.map(one, (keys, streams, fresh))


def numbers_as_arrays(method: Method) -> Method:
    """Settings that differ only in numbers share one compilation."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, method)


def measurements(name: str, said: Predictions, num_particles: int, seed: int) -> list[Measurement]:
    """All that is drawn and told of a method. Averages over stages begin after the first update, at stage 1."""
    right = np.mean(said.predicted > np.log(0.5), axis=2)  # (S, T)
    score = -np.mean(said.predicted, axis=2)
    num_tasks, num_stages = right.shape
    common = {"num_particles": num_particles, "num_sequences": num_tasks, "seed": seed}
    found: list[Measurement] = []

    def add(metric: str, stage: int | None, values: np.ndarray) -> None:
        found.append(Measurement(name, metric, stage, float(np.mean(values)), standard_error(values), **common))

    for stage in range(num_stages):
        seen = slice(0, 1) if stage == 0 else slice(1, stage + 1)
        average = right[:, seen].mean(axis=1)
        add(ACCURACY, stage, average)
        if num_tasks > 1:
            found.append(Measurement(name, DEVIATION, stage, float(average.std(ddof=1)), None, **common))
        add(SCORE, stage, score[:, seen].mean(axis=1))
        add(BATCH_ACCURACY, stage, right[:, stage])
        add(BATCH_SCORE, stage, score[:, stage])
        add(FRESH_ACCURACY, stage, said.fresh[:, stage, 0])
        add(FRESH_SCORE, stage, said.fresh[:, stage, 1])
    add(ACCURACY, None, right[:, 1:].mean(axis=1))
    add(SCORE, None, score[:, 1:].mean(axis=1))
    add(FRESH_ACCURACY, None, said.fresh[:, 1:, 0].mean(axis=1))
    add(FRESH_SCORE, None, said.fresh[:, 1:, 1].mean(axis=1))
    return found + _calibration(name, said, common)


def _calibration(name: str, said: Predictions, common: dict) -> list[Measurement]:
    """Of the images that were called an eight with probability p, after the first update: how many are eights?"""
    of_label, labels = np.exp(said.predicted[:, 1:]).ravel(), said.labels[:, 1:].ravel()
    known = np.isfinite(of_label)  # what a method that blew up predicts is in no bin
    of_label, labels = of_label[known], labels[known]
    eight = np.where(labels == 1, of_label, 1 - of_label)
    bins = np.minimum((eight * BINS).astype(int), BINS - 1)
    found, off = [], 0.0
    for b in range(BINS):
        inside = bins == b
        count = int(np.sum(inside))
        found.append(Measurement(name, COUNT, b, float(count), None, **common))
        if count:
            predicted, observed = float(np.mean(eight[inside])), float(np.mean(labels[inside]))
            off += abs(predicted - observed) * count / len(bins)
            found.append(Measurement(name, PREDICTED, b, predicted, None, **common))
            found.append(Measurement(name, OBSERVED, b, observed, (observed * (1 - observed) / count) ** 0.5, **common))
    return [*found, Measurement(name, CALIBRATION_ERROR, None, off, None, **common)]


def worst_starts(keys, method: Method, model: MiniBatch, stream, num: int, num_particles: int):
    """The `num` keys whose first particles predict the first batch of a stream worst, and their accuracy there."""

    @eqx.filter_jit
    def first(key):
        begun = method.particles(start(key, method, model, num_particles).own)
        return jnp.mean(log_predictive(begun, model, stream[0]) > jnp.log(0.5))

    accuracy = np.asarray(jax.lax.map(first, keys))
    chosen = np.argsort(accuracy, kind="stable")[:num]
    return keys[chosen], accuracy[chosen]


def choose(
    keys, candidates: Sequence[Method], model: MiniBatch, streams, num_particles: int
) -> tuple[int, list[float]]:
    """The candidate with the best prequential log score on streams kept for tuning, and the score of each."""
    nothing = streams[:, 0, :1]
    scores = []
    for candidate in candidates:
        score = -predict(keys, candidate, model, streams, nothing, num_particles).predicted[:, 1:].mean()
        scores.append(float(score) if np.isfinite(score) else float("inf"))
    return int(np.argmin(scores)), scores
