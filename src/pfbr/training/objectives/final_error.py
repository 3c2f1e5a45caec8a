"""Learn to end at the posterior of all the data: the operator as a method of variational inference.

Where the operator is not to be used again on other streams, only its last particles matter. The loss is the negative
ELBO of the last stage against the posterior of N data. The mean log-likelihood of as many *other* data as the stream
showed stands for that of all, without bias; on the data that moved the particles, to follow them too closely would pay.
"""

from typing import ClassVar

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.inference.method import step_key
from pfbr.inference.operator import Operator
from pfbr.models.minibatch import MiniBatch
from pfbr.particles.particles import Particles
from pfbr.training.settings import TrainingSettings
from pfbr.training.tasks import Family
from pfbr.typing import Key, Observations, Scalar


def transport(key: Key, operator: Operator, model: MiniBatch, batches: Observations, num_particles: int) -> Particles:
    """The particles after all batches; gradients go through every stage."""
    numbers = jnp.arange(1, batches.shape[0] + 1)

    def advance(particles, inputs):
        number, batch = inputs
        return operator.update(step_key(key, number), model, particles, batch)[0], None

    begun = operator.init(step_key(key, 0), model, num_particles)
    return jax.lax.scan(advance, begun, (numbers, batches))[0]


class FinalErrorObjective(eqx.Module):
    """[mean log q − log prior] / N − mean log p(o | x), after a stream of `settings.length` batches: nats a datum.

    o runs over the same number of further batches.
    """

    family: Family
    settings: TrainingSettings = eqx.field(static=True)
    num_data: int = eqx.field(static=True)
    name: ClassVar[str] = "final error"

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
