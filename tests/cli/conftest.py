"""What several tests of the command line share, made once."""

import jax
import numpy as np
import pytest

from pfbr.models import GaussianMean
from pfbr.models.simulate import simulate


@pytest.fixture(scope="session")
def stream() -> np.ndarray:
    """Five observations of `gaussian-mean:dim=2,observation_std=1`."""
    return np.asarray(simulate(jax.random.key(3), GaussianMean(2, 1.0, 1.0), 5).observations)
