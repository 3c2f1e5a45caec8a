"""Moves that are never accepted leave copies, and copies count once."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.metropolis import moved
from tests.inference.nested.test_importance import FILTERS, start  # noqa: F401  (a fixture)


def test_a_cloud_of_one_particle_that_cannot_move_is_worth_one(start):  # noqa: F811
    kept, cloud = start

    class Certain(type(FILTERS.model)):
        """Nothing but what is there already has a density."""

        def log_parameters(self, params):
            known = jnp.min(jnp.abs(params["log_step"] - cloud.thetas[:, 0])) == 0
            return jnp.where(known, 0.0, -jnp.inf)

    filters = eqx.tree_at(lambda f: f.model, FILTERS, Certain())
    heavy = eqx.tree_at(lambda c: c.log_weights, cloud, jnp.where(jnp.arange(128) == 5, 0.0, -jnp.inf) + jnp.zeros(128))
    after, accepted = jax.jit(lambda: moved(jax.random.key(0), filters, kept, heavy))()
    assert accepted == 0
    np.testing.assert_allclose(after.independent, 1.0, rtol=1e-5)
    np.testing.assert_array_equal(after.thetas, jnp.broadcast_to(cloud.thetas[5], (128, 1)))
