"""One component is the Laplace approximation."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr import baselines
from tests.baselines.streams import STILL


def test_one_component_is_the_laplace_approximation():
    """With one component the bound's optimum is the posterior itself, here N(o/2, I/2)."""
    observation, method = jnp.array([1.0, -1.0]), baselines.NonparametricVI(components=1, steps=400, batch=4)

    @eqx.filter_jit
    def step():
        state = method.init(jax.random.key(0), STILL, 4)
        return method.update(jax.random.key(1), STILL, state, observation)[0]

    state = step()
    np.testing.assert_allclose(state.centres[0], observation / 2, atol=0.02)
    np.testing.assert_allclose(np.exp(2 * state.log_widths[0]), 0.5, atol=0.02)
