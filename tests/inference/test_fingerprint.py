"""Models that answer alike are alike; one that does not is told by what differs."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.inference.fingerprint import POINTS, differences, fingerprint
from pfbr.inference.rows import Row
from pfbr.models import GaussianMean, LinearDynamics, LogisticRegression

MODEL = GaussianMean(2, observation_std=1.0)
ROW = Row(np.zeros(2, np.float32))
KEPT = fingerprint(MODEL, ROW)


class Renamed(GaussianMean):
    """Other words, the same model."""


class Drift(pfbr.StateSpaceModel):
    """Dynamics without a density, with inputs and a parameter."""

    speed: float = 1.0
    scale: float = 0.5
    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0])

    def sample_parameters(self, key):
        return {"noise": self.scale * jax.random.exponential(key)}

    def log_parameters(self, params):
        return -params["noise"] / self.scale - jnp.log(self.scale)

    def sample_transition(self, key, x, *, dt, inputs, params):
        return self.speed * x + inputs * dt + params["noise"] * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation[0], x[0], 0.5)


PUSHED = Row(np.zeros(1, np.float32), inputs=np.float32(0.5))


def test_the_same_model_is_known_again():
    assert KEPT.points.shape == (POINTS, 2)
    assert differences(MODEL, KEPT) == []
    assert differences(Renamed(2, observation_std=1.0), KEPT) == []
    assert differences(Drift(), fingerprint(Drift(), PUSHED)) == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (GaussianMean(2, observation_std=1.001), "`log_likelihood` is"),
        (GaussianMean(2, prior_std=0.99, observation_std=1.0), "`log_prior` is"),
        (GaussianMean(3, observation_std=1.0), "3 unknowns where the other had 2"),
        (LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]]), "which the other had not"),
        (LogisticRegression(2), "cannot be asked what the other was asked"),
        (Drift(), "1 unknowns where the other had 2"),
    ],
    ids=["likelihood", "prior", "dim", "dynamics", "inputs", "parameters"],
)
def test_another_one_is_told_by_what_differs(other, message):
    assert message in "; ".join(differences(other, KEPT))


def test_dynamics_without_a_density_and_parameters_are_told_apart():
    kept = fingerprint(Drift(), PUSHED)
    (faster,) = differences(Drift(speed=1.01), kept)
    assert faster.startswith("`sample_transition` is")
    (wider,) = differences(Drift(scale=0.51), kept)
    assert wider.startswith("`log_parameters` is")


def test_before_the_first_row_the_prior_is_all_there_is():
    kept = fingerprint(MODEL, None)
    assert differences(GaussianMean(2, observation_std=2.0), kept) == []
    assert "`log_prior` is" in differences(GaussianMean(2, prior_std=2.0), kept)[0]
