"""Kernel rules come closer with more pairs, and leave out what was not observed."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr import baselines
from pfbr.baselines.kernel_bayes import Pairs, condition, herd, rbf_gram
from tests.baselines.streams import STILL, error_of_mean


@pytest.mark.slow
@pytest.mark.parametrize("name", ["KernelBayes", "KernelFilter"])
def test_they_come_closer_with_more_pairs(name):
    """One observation; regularisation falls with the number of pairs, as consistency asks."""
    observations = jnp.array([[1.5, -1.5]])
    kind = getattr(baselines, name)
    few, many = (
        error_of_mean(kind(num_pairs=n, smoothing=r, regularisation=r), STILL, observations, 64, seeds=8)
        for n, r in ((20, 0.1), (500, 0.003))
    )
    assert many < 0.6 * few
    assert many < 0.2


def pairs_of(x, y, scale):
    x_scale = jnp.ones(x.shape[1])
    return Pairs(x, x, y, x_scale, scale, rbf_gram(x, x, x_scale), rbf_gram(y, y, scale))


def test_what_was_not_observed_is_left_out():
    """As if pairs had no such component; where nothing was seen, the prior's weights stay."""
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(12, 2))), jnp.asarray(rng.normal(size=(12, 3)))
    mu, scale, o = jnp.full(12, 1 / 12), jnp.array([1.0, 2.0, 0.5]), jnp.array([0.3, 9.0, -1.0])
    given = jax.jit(condition, static_argnums=3)
    some = given(pairs_of(x, y, scale), mu, o, 1e-2, jnp.array([True, False, True]))
    kept = jnp.array([0, 2])
    fewer = given(pairs_of(x, y[:, kept], scale[kept]), mu, o[kept], 1e-2, None)
    np.testing.assert_allclose(some, fewer, rtol=1e-3, atol=1e-5)
    nothing = given(pairs_of(x, y, scale), mu, o, 1e-2, jnp.zeros(3, bool))
    np.testing.assert_allclose(nothing, mu, rtol=1e-3)


def test_herding_follows_the_weights():
    """Equal weights on far points: each is taken as often; no weight, never."""
    x = 10.0 * jnp.arange(4.0)[:, None]
    gram = rbf_gram(x, x, jnp.ones(1))
    chosen = np.bincount(herd(gram, jnp.array([0.5, 0.25, 0.25, 0.0]), 8), minlength=4)
    np.testing.assert_array_equal(chosen, [4, 2, 2, 0])
