"""Exact draws on a grid are those of the grid of the truth."""

import jax
import numpy as np

from pfbr import baselines
from pfbr.metrics.truth import grid
from pfbr.models import GaussianMixture
from tests.baselines.streams import last, stream


def test_exact_on_a_grid_is_the_grid_of_the_truth():
    """Mean of 4096 draws after 3 observations, z = 5; and the evidence."""
    model = GaussianMixture()
    observations = stream(model)
    particles, log_evidence = last(baselines.Exact(capacity=4, cells=64), model, observations, 4096, seeds=1)
    mean, expected = jax.jit(lambda o: (lambda t: (t.mean[-1], t.log_evidence[-1]))(grid(model, o, cells=64)))(
        observations
    )
    points = np.asarray(particles.points[0])
    assert np.all(np.abs(points.mean(0) - np.asarray(mean)) < 5 * points.std(0) / 64 + 0.02)  # 0.02: the cells
    assert abs(float(log_evidence[0]) - float(expected)) < 0.01
