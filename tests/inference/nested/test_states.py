"""One state of every filter, with the mean and the covariance of all."""

import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.inner import Clouds
from pfbr.inference.nested.states import one_state_each


def test_mean_and_covariance_are_those_of_all_particles():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(64, 16, 2)) + rng.normal(size=(64, 1, 2))
    inner, outer = rng.dirichlet(np.ones(16), size=64), rng.dirichlet(5 * np.ones(64))
    clouds = Clouds(jnp.asarray(points, jnp.float32), jnp.log(jnp.asarray(inner, jnp.float32)))
    chosen = np.asarray(one_state_each(clouds, jnp.log(jnp.asarray(outer, jnp.float32))), float)
    weights = outer[:, None] * inner
    mean = np.einsum("nm,nmd->d", weights, points)
    cov = np.einsum("nm,nmi,nmj->ij", weights, points - mean, points - mean)
    np.testing.assert_allclose(outer @ chosen, mean, atol=1e-4)
    np.testing.assert_allclose((chosen - mean).T * outer @ (chosen - mean), cov, atol=1e-3)
