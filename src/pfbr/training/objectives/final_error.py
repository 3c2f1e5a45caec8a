"""Learn to end at the posterior of all the data: the operator as a method of variational inference.

Where the operator is not to be used again on other streams, only its last particles matter. The loss is the negative
ELBO of the last stage against the posterior of N data. The mean log-likelihood of as many *other* data as the stream
showed stands for that of all, without bias; on the data that moved the particles, to follow them too closely would pay.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.inference.operator import Operator
from pfbr.models.minibatch import MiniBatch
from pfbr.particles.particles import Particles
from pfbr.training.settings import TrainingSettings
from pfbr.training.tasks import Family
from pfbr.typing import Key, Observations, Scalar


def transport(key: Key, operator: Operator, model: MiniBatch, batches: Observations, num_particles: int) -> Particles:
    """The particles after all batches; gradients go through every stage."""
    init_key, steps_key = jax.random.split(key)

    def advance(state, inputs):
        step_key, batch = inputs
        return operator.update(step_key, model, state, batch)[0], None

    start = operator.init(init_key, model, num_particles)
    state, _ = jax.lax.scan(advance, start, (jax.random.split(steps_key, batches.shape[0]), batches))
    return state.particles


class FinalErrorDraw(eqx.Module):
    """[mean log q − log prior] / N − mean log p(o | x), after a stream of `settings.length` batches: nats a datum.

    o runs over the same number of further batches.
    """

    family: Family
    settings: TrainingSettings = eqx.field(static=True)
    num_data: int = eqx.field(static=True)

    def loss(self, key: Key, operator: Operator) -> Scalar:
        draw_key, run_key = jax.random.split(key)
        task = self.family.sample(draw_key, 2 * self.settings.length)
        shown, others = jnp.split(task.observations, 2)
        model = task.model
        assert isinstance(model, MiniBatch)
        last = transport(run_key, operator, model, shown, self.settings.num_particles)
        assert last.log_density is not None  # an operator always carries it
        fit = jnp.mean(jax.vmap(jax.vmap(model.log_likelihood, (None, 0)), (0, None))(last.points, others))
        above_prior = jnp.mean(last.log_density - jax.vmap(model.log_prior)(last.points))
        return above_prior / self.num_data - fit / model.size
