"""Cut a long stream: a later segment starts from the kernel estimate of the particles at the cut."""

import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.method import step_key
from pfbr.inference.operator import Operator
from pfbr.models.base import StateSpaceModel
from pfbr.particles.mixtures import KernelDensity
from pfbr.training.priors import PriorReplaced
from pfbr.training.tasks import Task
from pfbr.typing import Key


def run_to(key: Key, operator: Operator, task: Task, cut, num_particles: int):
    """The operator's particles after the first `cut` rows, which may be traced; no gradients."""
    frozen, rows = jax.lax.stop_gradient(operator), task.rows

    def advance(done, particles):
        row = jax.tree.map(lambda leaf: leaf[done], rows)
        return frozen.update(step_key(key, row.number), row.bound(task.model), particles, row.observation)[0]

    begun = frozen.init(step_key(key, 0), task.first_model, num_particles)
    _, particles = jax.lax.while_loop(
        lambda carry: carry[0] < cut,
        lambda carry: (carry[0] + 1, advance(*carry)),
        (jnp.zeros((), jnp.int32), begun),
    )
    return jax.lax.stop_gradient(particles)


def segment(key: Key, operator: Operator, task: Task, cut, length: int, num_particles: int) -> Task:
    """The task that begins after `cut` observations and has `length` of them.

    Its prior is π̂(x; X_cut), and the likelihoods of the earlier observations drop out of its loss, whose cost is
    quadratic in the length.
    """
    if isinstance(task.model, StateSpaceModel):
        raise InputError("a model with dynamics needs no segments: its loss is already one stage at a time.")
    particles = run_to(key, operator, task, cut, num_particles)
    prior = KernelDensity.of(particles.points)

    def part(leaf):
        return jax.lax.dynamic_slice_in_dim(leaf, cut, length)

    observations, truths, dt, inputs = jax.tree.map(part, (task.observations, task.truths, task.dt, task.inputs))
    return Task(PriorReplaced(task.model, prior), observations, truths, dt, inputs)
