"""Stein particles reach the mean as steps grow."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr import baselines
from pfbr.baselines.svgd import stein_direction
from tests.baselines.streams import STILL, error_of_mean


def test_it_reaches_the_mean_as_steps_grow():
    observations = jnp.array([[2.0, -2.0]])
    short, long = (error_of_mean(baselines.SVGD(steps=s), STILL, observations, 64, seeds=8) for s in (3, 200))
    assert long < 0.03 < short


def test_the_direction_is_the_sum_written_out():
    """mean_j [k(x_j, x_i) s_j + ∇_{x_j} k(x_j, x_i)] with the kernel's width from the median distance."""
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(2, 6, 2))
    squared = ((x[:, None] - x[None]) ** 2).sum(-1)
    width = np.median(squared) / (2 * np.log(7))
    gram = np.exp(-0.5 * squared / width)
    expected = [
        np.mean([gram[j, i] * s[j] - gram[j, i] * (x[j] - x[i]) / width for j in range(6)], axis=0) for i in range(6)
    ]
    found = jax.jit(stein_direction)(jnp.asarray(x), jnp.asarray(s))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
