"""Streams that several files here share: of one shape, so that what runs on them is compiled once."""

import jax
import numpy as np
import pytest

from pfbr.models import GaussianMean
from pfbr.models.simulate import Simulated, simulate
from tests.judging.drifting import Drifting


@pytest.fixture(scope="session")
def gaussian_mean() -> GaussianMean:
    return GaussianMean(2, observation_std=1.0)


@pytest.fixture(scope="session")
def streams(gaussian_mean) -> jax.Array:
    """(8, 4, 2), of the mean of a Gaussian."""
    return jax.jit(jax.vmap(lambda k: simulate(k, gaussian_mean, 4).observations))(
        jax.random.split(jax.random.key(0), 8)
    )


@pytest.fixture(scope="session")
def irregular() -> tuple[Simulated, np.ndarray]:
    """Four streams (4, 4, 1) of a model that needs elapsed times and inputs; and their observations, one missing."""
    drawn = jax.jit(jax.vmap(lambda k: simulate(k, Drifting(), 4)))(jax.random.split(jax.random.key(1), 4))
    observations = np.asarray(drawn.observations).copy()
    observations[0, 1] = np.nan
    return drawn, observations
