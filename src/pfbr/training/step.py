"""One step of learning: draw tasks, sum their losses, move the weights."""

from typing import Protocol

import equinox as eqx
import jax
import optax
from jax import numpy as jnp

from pfbr.inference.operator import Operator
from pfbr.training.objectives.elbo import stage_losses
from pfbr.training.priors import DirichletProcess, PriorReplaced
from pfbr.training.segments import segment
from pfbr.training.settings import TrainingSettings
from pfbr.training.tasks import Family, simulate
from pfbr.typing import Key, Scalar


class Draw(Protocol):
    """Something that draws what one step learns from, and says how wrong an operator is on it."""

    settings: TrainingSettings

    def loss(self, key: Key, operator: Operator) -> Scalar: ...


class TaskDraw(eqx.Module):
    """The law of training tasks: a family, perhaps with other priors, perhaps a later segment of a long stream."""

    family: Family
    settings: TrainingSettings = eqx.field(static=True)

    def loss(self, key: Key, operator: Operator):
        """Cumulative loss of one task drawn with `key`."""
        draw_key, prior_key, cut_key, loss_key = jax.random.split(key, 4)
        s = self.settings
        task = self.family.sample(draw_key, s.length * s.segments)
        model, observations = task.model, task.observations
        if s.priors == "generative":
            model = PriorReplaced(model, DirichletProcess(int(model.dim)).sample(prior_key))
            observations = simulate(draw_key, model, s.length * s.segments)[0]
        if s.segments > 1:
            cut = s.length * jax.random.randint(cut_key, (), 0, s.segments)
            model, observations = segment(prior_key, operator, model, observations, cut, s.length, s.num_particles)
        losses = stage_losses(loss_key, operator, model, observations, s.num_particles, through_stages=s.through_stages)
        return jnp.mean(losses)


def optimiser(settings: TrainingSettings) -> optax.GradientTransformation:
    return optax.inject_hyperparams(optax.adam)(learning_rate=settings.learning_rate)


@eqx.filter_jit
def train_step(key: Key, draw: Draw, operator: Operator, optimiser_state, learning_rate):
    """One step of Adam. Tasks whose gradient is not finite are dropped one by one, not with their batch."""
    weights, rest = eqx.partition(operator, eqx.is_inexact_array)

    def one(task_key):
        loss, gradient = jax.value_and_grad(lambda w: draw.loss(task_key, eqx.combine(w, rest)))(weights)
        norm = optax.global_norm(gradient)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        scale = jnp.minimum(1.0, draw.settings.clip / (norm + 1e-12))
        gradient = jax.tree.map(lambda g: jnp.where(finite, scale * g, 0.0), gradient)
        return jnp.where(finite, loss, 0.0), gradient, finite

    losses, gradients, finite = jax.vmap(one)(jax.random.split(key, draw.settings.batch))
    count = jnp.sum(finite)
    share = 1.0 / jnp.maximum(count, 1)
    gradient = jax.tree.map(lambda g: jnp.sum(g, axis=0) * share, gradients)
    optimiser_state.hyperparams["learning_rate"] = learning_rate
    change, moved = optimiser(draw.settings).update(gradient, optimiser_state, weights)
    keep = count > 0  # with no task left the step is skipped whole: Adam's memory too
    weights, optimiser_state = jax.tree.map(
        lambda new, old: jnp.where(keep, new, old),
        (optax.apply_updates(weights, change), moved),
        (weights, optimiser_state),
    )
    return eqx.combine(weights, rest), optimiser_state, jnp.sum(losses) * share, draw.settings.batch - count
