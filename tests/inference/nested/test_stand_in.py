"""A fit that stands for the past gives back a law that is linear and Gaussian."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.stand_in import fitted, no_stand_in


def test_means_and_spreads_of_the_state_follow_the_parameters():
    rng = np.random.default_rng(0)
    thetas = jnp.asarray(rng.normal(size=(200, 2)) * [1.0, 0.1] + [3.0, -1.0], jnp.float32)
    normals = jnp.asarray(rng.normal(size=(64, 2)), jnp.float32)
    normals = (normals - normals.mean(axis=0)) / normals.std(axis=0)
    mean = thetas @ jnp.asarray([[1.0, 0.0], [2.0, 5.0]]) + 7.0
    std = jnp.exp(0.5 * thetas[:, :1] - 2.0)
    states = mean[:, None] + std[:, None] * normals
    even = jnp.full((200,), -jnp.log(200.0))
    fit = fitted(thetas, even, states, jnp.full((200, 64), -jnp.log(64.0)))
    assert fit.in_use
    at = jnp.asarray([3.5, -1.1])
    drawn = fit.states(at, normals)
    np.testing.assert_allclose(drawn.mean(axis=0), [3.5 - 2.2 + 7, -5.5 + 7], atol=0.02)
    np.testing.assert_allclose(drawn.std(axis=0), np.exp(0.5 * 3.5 - 2.0), rtol=0.05)
    wanted = jax.scipy.stats.multivariate_normal.logpdf(at, thetas.mean(axis=0), np.cov(thetas.T, bias=True))
    np.testing.assert_allclose(fit.log_density(at[None])[0], wanted, atol=1e-3)


def test_before_any_row_is_gone_it_is_not_in_use():
    assert not no_stand_in(2, 3).in_use
