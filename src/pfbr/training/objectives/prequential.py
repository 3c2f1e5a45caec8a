"""Learn from how well the next observations are foretold.

The loss is the online log predictive score, Σ_m −log mean_n p(o_{m+1} | x_m^n). It is a proper score: over streams of
a kind, nothing has a lower expectation than the true predictive law given what was seen, which is Bayes' rule with the
law of the tasks as the prior. Unlike the ELBO it needs no prior density, and it uses what the tasks have in common even
where the model's own prior says nothing of it.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.inference.operator import Operator
from pfbr.metrics.prequential import foretell_from
from pfbr.training.settings import TrainingSettings
from pfbr.training.tasks import Family
from pfbr.typing import Key, Scalar


class ForetellingDraw(eqx.Module):
    """Streams of a family, or later segments of them: the operator runs to the cut without gradients.

    Within a segment gradients go through all stages, because how well an update was made shows in all later
    predictions. The prediction from the untouched prior is left out: no operator can change it.
    """

    family: Family
    settings: TrainingSettings = eqx.field(static=True)

    def loss(self, key: Key, operator: Operator) -> Scalar:
        s = self.settings
        draw_key, cut_key, init_key, steps_key = jax.random.split(key, 4)
        task = self.family.sample(draw_key, s.length * s.segments + 1)
        keys = jax.random.split(steps_key, s.length * s.segments + 1)
        state = operator.init(init_key, task.model, s.num_particles)
        cut = jnp.zeros((), jnp.int32)
        if s.segments > 1:
            cut = s.length * jax.random.randint(cut_key, (), 0, s.segments)
            frozen = jax.lax.stop_gradient(operator)

            def advance(carry):
                m, state = carry
                return m + 1, frozen.update(keys[m], task.model, state, task.observations[m])[0]

            state = jax.lax.while_loop(lambda carry: carry[0] < cut, advance, (jnp.zeros((), jnp.int32), state))[1]
            state = jax.lax.stop_gradient(state)

        def part(array):
            return jax.lax.dynamic_slice_in_dim(array, cut, s.length + 1)

        foretold = foretell_from(state, part(keys), operator, task.model, part(task.observations))
        return -jnp.mean(foretold[1:])
