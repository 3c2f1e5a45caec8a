"""Learn from how well the next observations are predicted.

The loss is the prequential log score, Σ_m −log mean_n p(o_{m+1} | x_m^n). It is a proper score: over streams of a kind,
nothing has a lower expectation than the true predictive law given what was seen, which is Bayes' rule with the law of
the tasks as the prior. Unlike the ELBO it needs no prior density, and it uses what the tasks have in common even where
the model's own prior says nothing of it.
"""

from typing import ClassVar

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.inference.method import step_key
from pfbr.inference.operator import Operator
from pfbr.metrics.prequential import log_predictive
from pfbr.training.segments import run_to
from pfbr.training.settings import TrainingSettings
from pfbr.training.tasks import Family
from pfbr.typing import Key, Scalar


class PrequentialObjective(eqx.Module):
    """Streams of a family, or later segments of them: the operator runs to the cut without gradients.

    Within a segment gradients go through all stages, because how well an update was made shows in all later
    predictions. The prediction from the untouched prior is left out: no operator can change it.
    """

    family: Family
    settings: TrainingSettings = eqx.field(static=True)
    name: ClassVar[str] = "prequential"

    def loss(self, key: Key, operator: Operator) -> Scalar:
        s = self.settings
        draw_key, cut_key, run_key = jax.random.split(key, 3)
        task = self.family.sample(draw_key, s.length * s.segments + 1)
        cut = s.length * jax.random.randint(cut_key, (), 0, s.segments)
        begun = run_to(run_key, operator, task, cut, s.num_particles)

        def advance(particles, row):
            model = row.bound(task.model)
            predicted = log_predictive(particles, model, row.observation)
            return operator.update(step_key(run_key, row.number), model, particles, row.observation)[0], predicted

        rows = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, cut, s.length + 1), task.rows)
        predicted = jax.lax.scan(advance, begun, rows)[1]
        return -jnp.mean(predicted[1:])
