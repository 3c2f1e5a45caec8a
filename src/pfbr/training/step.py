"""One step of learning: draw tasks, sum their losses, move the weights."""

from typing import Any

import equinox as eqx
import jax
import optax
from jax import numpy as jnp
from jax.sharding import Mesh

from pfbr.inference.operator import Operator
from pfbr.sharding import mapped, on_one_device, padded, whole
from pfbr.training.objectives.base import Objective
from pfbr.training.settings import TrainingSettings
from pfbr.typing import Key


def optimiser(settings: TrainingSettings) -> optax.GradientTransformation:
    return optax.inject_hyperparams(optax.adam)(learning_rate=settings.learning_rate)


class Learning(eqx.Module):
    """What every task of a step is given."""

    objective: Objective
    operator: Operator


class Gradients(eqx.Module):
    """Loss and clipped gradient of each task; zero where they are not finite."""

    losses: Any
    gradients: Any
    finite: Any


def train_step(
    key: Key, objective: Objective, operator: Operator, optimiser_state, learning_rate, mesh: Mesh | None = None
):
    """One step of Adam. Tasks whose gradient is not finite are dropped one by one, not with their batch.

    With a `mesh` the tasks are divided among its devices. Their gradients are summed in the order of the tasks and not
    of the devices: the step is the same, to the last bit for as many tasks a device and to rounding for others.
    """
    if mesh is None:
        return _train_step(key, objective, operator, optimiser_state, learning_rate)
    batch = objective.settings.batch
    keys = padded(jax.random.split(key, batch), whole(batch, mesh))
    found = on_one_device(mapped(mesh, _gradients, Learning(objective, operator), keys))
    found = jax.tree.map(lambda leaf: leaf[:batch], found)
    return _moved(objective, operator, optimiser_state, learning_rate, found)


@eqx.filter_jit
def _train_step(key: Key, objective: Objective, operator: Operator, optimiser_state, learning_rate):
    found = _gradients(Learning(objective, operator), jax.random.split(key, objective.settings.batch))
    return _move(objective, operator, optimiser_state, learning_rate, found)


def _gradients(shared: Learning, keys: Any) -> Gradients:
    """Of the tasks with these keys, all at once."""
    objective = shared.objective
    weights, rest = eqx.partition(shared.operator, eqx.is_inexact_array)

    def one(task_key):
        loss, gradient = jax.value_and_grad(lambda w: objective.loss(task_key, eqx.combine(w, rest)))(weights)
        norm = optax.global_norm(gradient)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        scale = jnp.minimum(1.0, objective.settings.clip / (norm + 1e-12))
        gradient = jax.tree.map(lambda g: jnp.where(finite, scale * g, 0.0), gradient)
        return Gradients(jnp.where(finite, loss, 0.0), gradient, finite)

    return jax.vmap(one)(keys)


def _move(objective: Objective, operator: Operator, optimiser_state, learning_rate, found: Gradients):
    """The weights after a step along the mean gradient, Adam's memory, the mean loss, how many tasks were dropped."""
    weights, rest = eqx.partition(operator, eqx.is_inexact_array)
    count = jnp.sum(found.finite)
    share = 1.0 / jnp.maximum(count, 1)
    gradient = jax.tree.map(lambda g: jnp.sum(g, axis=0) * share, found.gradients)
    optimiser_state.hyperparams["learning_rate"] = learning_rate
    change, moved = optimiser(objective.settings).update(gradient, optimiser_state, weights)
    keep = count > 0  # with no task left the step is skipped whole: Adam's memory too
    weights, optimiser_state = jax.tree.map(
        lambda new, old: jnp.where(keep, new, old),
        (optax.apply_updates(weights, change), moved),
        (weights, optimiser_state),
    )
    return eqx.combine(weights, rest), optimiser_state, jnp.sum(found.losses) * share, objective.settings.batch - count


_moved = eqx.filter_jit(_move)
