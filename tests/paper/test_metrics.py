"""The paper's measures, where the answer is known."""

import jax
import numpy as np
import pytest

from pfbr.metrics.mmd import mmd2
from pfbr.paper import metrics
from pfbr.particles.particles import Particles, equally_weighted, normalise


@jax.jit
def both(particles, draws, keys):
    """MMD² of all pairs, and by blocks once for each key."""
    by_blocks = jax.lax.map(lambda key: metrics.mmd2_in_blocks(key, particles, draws, "rbf"), keys)
    return mmd2(particles, draws, "rbf").value, by_blocks


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_within_random_blocks_give_the_mmd_of_all_pairs_on_average(weighted, monkeypatch):
    """64 random partitions of one set; the mean is within z = 5 of the full U-statistic (false alarm: 1e-6)."""
    monkeypatch.setattr(metrics, "BLOCK", 128)
    keys = jax.random.split(jax.random.key(0), 4)
    points, draws = jax.random.normal(keys[0], (256, 2)), 0.3 + jax.random.normal(keys[1], (50, 2))
    particles = equally_weighted(points)
    if weighted:
        particles = Particles(points, normalise(0.3 * jax.random.normal(keys[2], (256,))))

    full, several = both(particles, draws, jax.random.split(keys[3], 64))
    error = np.std(several, ddof=1) / 8
    assert 0 < error < 0.01
    assert abs(np.mean(several) - full) < 5 * error + 1e-4 * weighted  # weights: a ratio of averages, biased a little
