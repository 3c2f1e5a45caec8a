"""The rank of one more draw is uniform, whatever the weights and the ties."""

import jax
import numpy as np
import scipy.stats
from jax import numpy as jnp

from pfbr.judging.calibration.ranks import rank
from pfbr.particles.particles import normalise


def test_ranks_of_one_more_draw_are_uniform_with_weights_and_with_ties():
    """Draws of N(0, 1); of N(0, 4) with weights; of a coin. The truth is of the same law. Kolmogorov at 1e-4."""

    @jax.jit
    @jax.vmap
    def ranks(key):
        keys = jax.random.split(key, 4)
        points, truth = jax.random.normal(keys[0], (200, 1)), jax.random.normal(keys[1], (1,))
        even, wide = jnp.full(200, -jnp.log(200.0)), 2 * points
        weights = normalise(-0.5 * wide[:, 0] ** 2 + 0.125 * wide[:, 0] ** 2)
        coins = rank(keys[3], even, (points > 0).astype(float), (truth > 0).astype(float))
        return rank(keys[2], even, points, truth)[0], rank(keys[3], weights, wide, truth)[0], coins[0]

    for found in ranks(jax.random.split(jax.random.key(0), 2000)):
        assert scipy.stats.kstest(np.asarray(found), "uniform").pvalue > 1e-4
