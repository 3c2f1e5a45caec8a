"""Ancestors against sorting and inverting the cumulative weights."""

import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.resampling import ancestors


def test_one_dimension_is_the_inverse_of_the_cumulative_weights():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(5, 16, 1)), rng.dirichlet(np.ones(16), size=5)
    combs = (np.arange(16) + rng.random((5, 1))) / 16
    found = np.asarray(ancestors(*(jnp.asarray(a, jnp.float32) for a in (points, weights, combs))))
    for i in range(5):
        order = np.argsort(points[i, :, 0])
        wanted = order[np.searchsorted(np.cumsum(weights[i][order]), combs[i], side="right")]
        np.testing.assert_array_equal(found[i], wanted)
        assert np.all(np.diff(points[i, found[i], 0]) >= 0)


def test_in_the_plane_shares_are_kept_and_the_longest_axis_is_the_line():
    rng = np.random.default_rng(1)
    along = rng.normal(size=(1, 32, 1))
    points = np.concatenate([along, 2 * along + 0.01 * rng.normal(size=(1, 32, 1))], axis=2)
    weights = rng.dirichlet(np.ones(32), size=1)
    combs = (np.arange(32)[None] + 0.5) / 32
    found = np.asarray(ancestors(*(jnp.asarray(a, jnp.float32) for a in (points, weights, combs))))
    counts = np.bincount(found[0], minlength=32)
    assert np.all(np.abs(counts - 32 * weights[0]) < 1)  # an even comb: to one each
    assert np.all(np.diff(points[0, found[0], 0]) > -0.05)
