"""What several tests of the command line share, made once."""

import jax
import numpy as np
import pytest

from pfbr.models import GaussianMean
from pfbr.models.simulate import simulate
from tests.cli.commands import pfbr_command

SMALL_TRAINING = ("gaussian-mean:dim=1", "--operator", "paper", "--steps", 2, "--particles", 8)  # soonest to compile


@pytest.fixture(scope="session")
def stream() -> np.ndarray:
    """Five observations of `gaussian-mean:dim=2,observation_std=1`."""
    return np.asarray(simulate(jax.random.key(3), GaussianMean(2, 1.0, 1.0), 5).observations)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """An operator from two steps of training, and what the command said."""
    file = tmp_path_factory.mktemp("trained") / "operator.pfbr"
    result = pfbr_command("train", *SMALL_TRAINING, "--out", file)
    assert result.exit_code == 0, result.output
    return file, result
