"""Renewal from a shrunk kernel density keeps mean and covariance."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr import baselines
from pfbr.models import GaussianMean
from pfbr.particles.particles import weighted_cov
from tests.baselines.streams import last


def test_it_keeps_mean_and_covariance_when_it_renews():
    """Renewal of every particle before each of 3 flat updates leaves both where they were: z = 5 over 64 seeds."""
    flat = GaussianMean(2, observation_std=1e6)
    particles, _ = last(baselines.OnePassSMC(threshold=1.0), flat, jnp.zeros((3, 2)), 128)
    spread = np.asarray(jax.vmap(jnp.diagonal)(weighted_cov(particles)))
    assert np.all(np.abs(spread.mean(0) - 1.0) < 5 * spread.std(0, ddof=1) / 8)
