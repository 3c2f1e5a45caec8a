"""Transitions stand for the density before an observation where they are wide, kernels where they are spikes."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.transitions import Before, predictive_density

START = jnp.sign(jax.random.normal(jax.random.key(0), (256, 1))) * 6 + jax.random.normal(jax.random.key(1), (256, 1))
GRID = jnp.linspace(-15.0, 15.0, 301)[:, None]


def pairs_with(std):
    return lambda to, start: jax.scipy.stats.norm.logpdf(to, start[:, 0], std)


def density_after(std):
    points = START + std * jax.random.normal(jax.random.key(2), START.shape)
    cloud = equally_weighted(points)
    return predictive_density(jax.random.key(3), cloud, Before(START, pairs_with(std)), Settings(), cloud.log_weights)


def test_wide_transitions_are_right_in_the_tails():
    density = density_after(2.0)
    assert bool(density.by_transitions)
    true = jax.nn.logsumexp(pairs_with(2.0)(GRID, START), axis=1) - np.log(256)
    np.testing.assert_allclose(density(GRID), true, atol=1e-3)
    assert float(jnp.max(density.beyond(GRID))) == 0


@pytest.mark.parametrize("std", [1e-3, 0.0], ids=["spikes", "none at all"])
def test_spikes_and_no_noise_leave_it_to_kernels(std):
    density = density_after(std)
    assert not bool(density.by_transitions)
    assert bool(jnp.all(jnp.isfinite(density(GRID))))


def test_a_model_s_own_transitions_come_first_where_kernels_are_hardly_better():
    """A Gaussian cloud, which one kernel fits as well as anything: far out only the transitions are right."""
    start = jax.random.normal(jax.random.key(100), (1024, 1))
    for number in range(8):
        points = start + 0.7 * jax.random.normal(jax.random.key(number), start.shape)
        cloud = equally_weighted(points)
        density = predictive_density(
            jax.random.key(3), cloud, Before(start, pairs_with(0.7)), Settings(), cloud.log_weights
        )
        assert bool(density.by_transitions)
