"""How good an operator is on tasks it was not trained on: its score above that of as many exact draws."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float

from pfbr.inference.method import record
from pfbr.inference.operator import Operator
from pfbr.metrics.prequential import prequential as prequential_scores
from pfbr.metrics.scores import cross_entropy
from pfbr.metrics.truth import exact
from pfbr.particles.particles import equally_weighted
from pfbr.sharding import mapped, on_one_device, padded, whole
from pfbr.training.objectives.elbo import stage_losses
from pfbr.training.tasks import Family, Task
from pfbr.typing import Key, Scalar

MOST_ABOVE_EXACT = 3.0  # nats that a stage can count for


class ValidationSet(eqx.Module):
    """ValidationSet-out tasks with draws of their true posteriors, made once; arrays have a leading axis over tasks."""

    tasks: Task
    draws: Float[Array, "v t m d"] | None  # None where the model has no exact posterior
    exact_score: Float[Array, "v t"] | None
    num_particles: int = eqx.field(static=True)
    prequential: bool = eqx.field(static=True, default=False)  # scored by predictions, not by the posterior


def draw_validation_set(
    key: Key,
    family: Family,
    length: int,
    num_tasks: int,
    num_particles: int,
    *,
    num_draws: int = 512,
    prequential: bool = False,
) -> ValidationSet:
    """Draw validation tasks, and what exact sampling scores on them; nothing is sampled for a `prequential` set."""
    task_key, draw_key, exact_key = jax.random.split(key, 3)
    # the family is an argument: one that holds data would otherwise be compiled in as a constant
    sample = eqx.filter_jit(eqx.filter_vmap(lambda f, k: f.sample(k, length), in_axes=(None, 0)))
    tasks = sample(family, jax.random.split(task_key, num_tasks))
    if prequential:
        return ValidationSet(tasks, None, None, num_particles, True)
    one = eqx.filter_eval_shape(lambda k: exact_of(family.sample(k, length)), task_key)
    if one is None:
        return ValidationSet(tasks, None, None, num_particles)
    keys = jax.random.split(draw_key, (num_tasks, length)), jax.random.split(exact_key, (num_tasks, length))

    def judge(inputs):
        task, draw_keys, exact_keys = inputs
        truth = exact_of(task)
        draws = jax.vmap(lambda t, k: t.sample(k, num_draws))(truth, draw_keys)
        best = jax.vmap(lambda t, k: t.sample(k, num_particles))(truth, exact_keys)
        return draws, jax.vmap(lambda b, d: cross_entropy(equally_weighted(b), d))(best, draws)

    dynamic, static = eqx.partition((tasks, *keys), eqx.is_array)
    draws, score = jax.jit(lambda arrays: jax.lax.map(lambda a: judge(eqx.combine(a, static)), arrays))(dynamic)
    return ValidationSet(tasks, draws, score, num_particles)


class Judged(eqx.Module):
    """Validation tasks, each with the key of its run; draws of the truth and their score where there is one."""

    keys: Any
    tasks: Any
    draws: Any
    best: Any


class Judge(eqx.Module):
    operator: Operator
    static: Any  # what the tasks have in common
    num_particles: int = eqx.field(static=True)
    prequential: bool = eqx.field(static=True)


def validate(key: Key, operator: Operator, held: ValidationSet, mesh: Mesh | None = None) -> Scalar:
    """Cross entropy above exact sampling, mean over tasks and stages; the negative ELBO where no truth is known; for
    a `prequential` set, −log predictive density of every observation but the first.

    A stage counts for at most `MOST_ABOVE_EXACT` nats: a single stream that goes astray shall not decide which
    operator is best. With a `mesh` the tasks are divided among its devices, and the score is the same.
    """
    number = held.tasks.observations.shape[0]
    dynamic, static = eqx.partition(held.tasks, eqx.is_array)
    judge = Judge(operator, static, held.num_particles, held.prequential)
    each = Judged(jax.random.split(key, number), dynamic, held.draws, held.exact_score)
    scores = on_one_device(mapped(mesh, _scores, judge, padded(each, whole(number, mesh))))
    return jnp.mean(scores[:number])


def _scores(judge: Judge, each: Judged) -> Float[Array, " v"]:
    """Of each task, one after the other."""
    operator, num_particles = judge.operator, judge.num_particles

    def one(own: Judged) -> Scalar:
        task = eqx.combine(own.tasks, judge.static)
        if judge.prequential:
            return -jnp.mean(prequential_scores(own.keys, operator, task.model, task.stream, num_particles)[1:])
        if own.draws is None:
            return jnp.mean(stage_losses(own.keys, operator, task, num_particles))
        particles = record(own.keys, operator, task.model, task.stream, num_particles).particles
        above = jax.vmap(cross_entropy)(particles, own.draws) - own.best
        return jnp.mean(jnp.minimum(jnp.where(jnp.isnan(above), MOST_ABOVE_EXACT, above), MOST_ABOVE_EXACT))

    return jax.lax.map(one, each)


def exact_of(task: Task):
    """The exact posteriors of a task, or None where there is no formula or grid for them."""
    return exact(task.model, task.stream)
