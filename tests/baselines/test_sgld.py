"""Langevin dynamics have the widening of their step."""

import numpy as np
from jax import numpy as jnp

from pfbr import baselines
from pfbr.particles.particles import weighted_cov
from tests.baselines.streams import STILL, last


def test_it_has_the_widening_of_its_step():
    """In equilibrium the variance V (in units of the truth's) solves V (1 − ε V / 4) = 1; ε = 0.5 gives 1.17, not 1."""
    observations = jnp.array([[1.0, -1.0]])
    for epsilon, expected in ((0.5, (1 - np.sqrt(0.5)) * 4), (0.05, (1 - np.sqrt(0.95)) * 40)):
        method = baselines.SGLD(step_size=jnp.asarray(epsilon), steps=200)  # an array: one compilation for both
        said, _ = last(method, STILL, observations, 4096, seeds=1)
        variance = np.diagonal(np.asarray(weighted_cov(said))[0]) / 0.5
        assert np.all(np.abs(variance / expected - 1) < 5 * np.sqrt(2 / 4096))  # z = 5
