"""Learn the velocity from the equation that it must satisfy, without following any particle.

Between prior and posterior lie the densities q_t ∝ q_0 exp(t ℓ). A velocity moves particles along them if

    r = ∇·v + v · ∇ log q_t + ℓ − E ℓ

vanishes, and r is just the rate at which the log weight of a particle goes astray, d/dt (log q − log q_t) = −r. Where
q_t can be sampled and differentiated, as in the plane, E r² is a loss with one evaluation of the velocity, where the
ELBO needs a whole solve and its gradient.
"""

from typing import ClassVar

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.flow.velocities.residual import ResidualVelocity
from pfbr.inference.operator import Operator
from pfbr.metrics.truth import box_of_mass, grid_from_log_density, prior_box
from pfbr.models.base import Model, StateSpaceModel
from pfbr.training.settings import TrainingSettings
from pfbr.training.tasks import Family, Task
from pfbr.typing import Key


def applies(operator: Operator, model: Model) -> bool:
    """Whether posteriors of the model can be sampled on a grid, and the velocity is the closed-loop kind whose fixed
    context is only a time schedule."""
    return (
        isinstance(operator.velocity, ResidualVelocity)
        and int(model.dim) == 2
        and not isinstance(model, StateSpaceModel)
    )


class ContinuityObjective(eqx.Module):
    """Problems for the continuity equation: a family's posterior after a random number of observations, tempered on
    the way to the next one, in the plane."""

    family: Family
    settings: TrainingSettings = eqx.field(static=True)
    name: ClassVar[str] = "continuity"

    def loss(self, key: Key, operator: Operator):
        """log(1 + E r² / Var ℓ), where E r² / Var ℓ is one for a velocity that does nothing, zero for the exact one.

        The logarithm keeps the few problems that are beyond any hope from drowning all others.
        """
        task_key, stage_key, time_key, sample_key, prepare_key = jax.random.split(key, 5)
        task = self.family.sample(task_key, self.settings.length)
        stage = jax.random.randint(stage_key, (), 0, self.settings.length)
        t = jax.random.uniform(time_key)
        points, scores = sample_between(sample_key, task, stage, t, self.settings.num_particles)
        likelihood = jax.tree.map(lambda leaf: leaf[stage], task.rows).likelihood(task.model)[1]
        values = likelihood.values(points)
        context = operator.velocity.prepare(prepare_key, points, likelihood)
        velocity, divergence = operator.velocity(jnp.zeros(()), points, points, context, likelihood)
        rate = context.rate(jnp.zeros(()))  # the time change belongs to the solver, not to the equation
        residual = (divergence + jnp.sum(velocity * scores, axis=-1)) / rate + values - jnp.mean(values)
        return jnp.log1p(jnp.mean(residual**2) / (jnp.var(values) + 1e-3))


def sample_between(key: Key, task: Task, stage, t, num: int):
    """Draws from π(x) Π_{i < stage} p(o_i | x) · p(o_stage | x)^t, and the score of that density at them."""
    indices = jnp.arange(task.observations.shape[0])
    powers = jnp.where(indices < stage, 1.0, jnp.where(indices == stage, t, 0.0))

    def log_density(x):
        each = jax.vmap(lambda row: row.bound(task.model).log_likelihood(x, row.observation))(task.rows)
        return task.first_model.log_prior(x) + jnp.sum(powers * each)

    many = jax.vmap(log_density)
    lower, upper = box_of_mass(many, *prior_box(task.model), cells=40, refinements=3)
    points = grid_from_log_density(many, lower, upper, cells=96).sample(key, num)
    points = jax.lax.stop_gradient(points)
    return points, jax.vmap(jax.grad(log_density))(points)
