"""How wrong an operator is on a stream, without knowing the posterior: the negative ELBO of every stage."""

from typing import ClassVar

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.inference.method import step_key
from pfbr.inference.operator import Operator
from pfbr.inference.predictive import predictive_log_density
from pfbr.models.base import StateSpaceModel
from pfbr.models.simulate import simulate
from pfbr.training.priors import DirichletProcess, PriorReplaced
from pfbr.training.segments import segment
from pfbr.training.settings import TrainingSettings
from pfbr.training.tasks import Family, Task
from pfbr.typing import Key


class ElboObjective(eqx.Module):
    """The mean negative ELBO of a family's tasks, perhaps with other priors, perhaps of a later segment of a stream."""

    family: Family
    settings: TrainingSettings = eqx.field(static=True)
    name: ClassVar[str] = "elbo"

    def loss(self, key: Key, operator: Operator):
        """Cumulative loss of one task drawn with `key`."""
        draw_key, prior_key, cut_key, loss_key = jax.random.split(key, 4)
        s = self.settings
        task = self.family.sample(draw_key, s.length * s.segments)
        if s.priors == "generative":
            model = PriorReplaced(task.model, DirichletProcess(int(task.model.dim)).sample(prior_key))
            drawn = simulate(draw_key, model, s.length * s.segments, dt=task.dt, inputs=task.inputs)
            task = Task(model, drawn.observations, drawn.truths, task.dt, task.inputs)
        if s.segments > 1:
            cut = s.length * jax.random.randint(cut_key, (), 0, s.segments)
            task = segment(prior_key, operator, task, cut, s.length, s.num_particles)
        losses = stage_losses(loss_key, operator, task, s.num_particles, through_stages=s.through_stages)
        return jnp.mean(losses)


def stage_losses(
    key: Key, operator: Operator, task: Task, num_particles: int, *, through_stages: bool = False
) -> Float[Array, " t"]:
    """mean_n [log q_m(x_m^n) − log p(x_m^n, O_m)] for m = 1 … T.

    Each term is KL(q_m ‖ p(x | O_m)) minus the log evidence, which no operator can change. With dynamics the joint
    density of a stage is p(o_m | x) π̂(x), π̂ the predictive density of the particles.

    Gradients stop between stages unless `through_stages`: an operator then answers for its own update of the
    particles that it was given, and not for what later updates make of them.
    """
    rows = task.rows

    def log_joint(points, stage):
        """log p(x, O_m) of a model without dynamics: all observations up to this stage."""

        def log_likelihoods(row):
            return row.likelihood(task.model)[1].values(points)

        seen = jnp.sum(jnp.where((rows.number <= stage)[:, None], jax.vmap(log_likelihoods)(rows), 0.0), axis=0)
        return jax.vmap(task.first_model.log_prior)(points) + seen

    def stage_loss(particles, row):
        if not through_stages:
            particles = jax.lax.stop_gradient(particles)
        model, likelihood = row.likelihood(task.model)
        step = operator.propose(step_key(key, row.number), model, particles, likelihood)
        points = step.moved.points
        if not isinstance(model, StateSpaceModel):
            target = log_joint(points, row.number)
        else:
            predictive = predictive_log_density(
                model, particles.points, step.prior.points, points, how=operator.predictive
            )
            target = likelihood.values(points) + predictive
        return step.after, jnp.mean(step.moved.log_density - target)

    begun = operator.init(step_key(key, 0), task.first_model, num_particles)
    return jax.lax.scan(stage_loss, begun, rows)[1]
