"""The error of the last stage alone, as variational inference has it."""

import equinox as eqx
import jax
import numpy as np

from pfbr.inference.operator import gaussian_operator
from pfbr.models import GaussianMean, MiniBatch
from pfbr.training import TrainingSettings
from pfbr.training.objectives.final_error import FinalErrorObjective, transport
from pfbr.training.tasks import ModelFamily

KEY = jax.random.key(0)


def test_the_final_error_is_the_elbo_of_the_last_stage():
    family = ModelFamily(MiniBatch(GaussianMean(2), 4))
    settings = TrainingSettings(num_particles=16, length=2)
    operator = gaussian_operator(solver="heun", steps=1, qmc=False)
    loss = eqx.filter_jit(lambda objective: objective.loss(KEY, operator))(FinalErrorObjective(family, settings, 40))
    draw_key, run_key = jax.random.split(KEY)
    task = eqx.filter_jit(lambda key: family.sample(key, 4))(draw_key)
    last = eqx.filter_jit(transport)(run_key, operator, task.model, task.observations[:2], 16)

    @jax.jit
    def log_joint(points):
        each = jax.vmap(jax.vmap(task.model.log_likelihood, (None, 0)), (0, None))(points, task.observations[2:])
        return 40 / 8 * each.sum(axis=1) + jax.vmap(task.model.log_prior)(points)  # 8 data stand for 40

    assert np.isclose(loss, np.mean(last.log_density - log_joint(last.points)) / 40, rtol=1e-4)
