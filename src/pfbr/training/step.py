"""One step of learning: draw tasks, sum their losses, move the weights."""

import equinox as eqx
import jax
import optax
from jax import numpy as jnp

from pfbr.inference.operator import Operator
from pfbr.training.objectives.base import Objective
from pfbr.training.settings import TrainingSettings
from pfbr.typing import Key


def optimiser(settings: TrainingSettings) -> optax.GradientTransformation:
    return optax.inject_hyperparams(optax.adam)(learning_rate=settings.learning_rate)


@eqx.filter_jit
def train_step(key: Key, objective: Objective, operator: Operator, optimiser_state, learning_rate):
    """One step of Adam. Tasks whose gradient is not finite are dropped one by one, not with their batch."""
    weights, rest = eqx.partition(operator, eqx.is_inexact_array)

    def one(task_key):
        loss, gradient = jax.value_and_grad(lambda w: objective.loss(task_key, eqx.combine(w, rest)))(weights)
        norm = optax.global_norm(gradient)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        scale = jnp.minimum(1.0, objective.settings.clip / (norm + 1e-12))
        gradient = jax.tree.map(lambda g: jnp.where(finite, scale * g, 0.0), gradient)
        return jnp.where(finite, loss, 0.0), gradient, finite

    losses, gradients, finite = jax.vmap(one)(jax.random.split(key, objective.settings.batch))
    count = jnp.sum(finite)
    share = 1.0 / jnp.maximum(count, 1)
    gradient = jax.tree.map(lambda g: jnp.sum(g, axis=0) * share, gradients)
    optimiser_state.hyperparams["learning_rate"] = learning_rate
    change, moved = optimiser(objective.settings).update(gradient, optimiser_state, weights)
    keep = count > 0  # with no task left the step is skipped whole: Adam's memory too
    weights, optimiser_state = jax.tree.map(
        lambda new, old: jnp.where(keep, new, old),
        (optax.apply_updates(weights, change), moved),
        (weights, optimiser_state),
    )
    return eqx.combine(weights, rest), optimiser_state, jnp.sum(losses) * share, objective.settings.batch - count
