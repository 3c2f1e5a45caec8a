"""A trained proposal raises the evidence bound, and an untrained one already makes the best linear guess."""

import equinox as eqx
import jax
import numpy as np
import pytest

from pfbr import baselines
from pfbr.baselines.proposals import measure_scales, new_proposal
from pfbr.errors import InputError
from pfbr.models import StateSpaceModel
from pfbr.models.base import normal_log_density
from tests.baselines.streams import MOVING, STILL


class Folded(StateSpaceModel):
    """A walk seen through its square: no linear guess is any good."""

    dim: int = eqx.field(static=True, default=1, init=False)

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return normal_log_density(x, 0.0, 1.0)

    def sample_transition(self, key, x):
        return 0.9 * x + 0.5 * jax.random.normal(key, (1,))

    def log_transition(self, x_next, x):
        return normal_log_density(x_next, 0.9 * x, 0.5)

    def log_likelihood(self, x, observation):
        return normal_log_density(observation, x**2, 0.1)

    def sample_observation(self, key, x):
        return x**2 + 0.1 * jax.random.normal(key, (1,))


@pytest.mark.slow
def test_training_raises_the_evidence_bound():
    """Same validation streams before and after; the network learns to look at the observation."""
    told = []
    fitted = baselines.fit_aesmc(
        jax.random.key(0),
        Folded(),
        max_steps=200,
        minutes=5,
        length=5,
        num_particles=8,
        rate=3e-3,
        callback=lambda *what: told.append(what),
    )
    assert fitted.progress == told
    assert max(bound for _, _, bound in told) > told[0][2] + 0.3
    assert fitted.method.unsupported(MOVING) is not None


def test_an_untrained_proposal_is_the_best_linear_guess():
    """For a linear system the regression of x on (x_prev, o) is Kalman's: gain K and (I − K B) A, here to 0.05."""
    scales = jax.jit(lambda key: measure_scales(key, MOVING, num_streams=400))(jax.random.key(0))
    A, Q, B, R = (np.asarray(m) for m in MOVING.linear_gaussian()[:4])
    gain = Q @ B.T @ np.linalg.inv(B @ Q @ B.T + R)
    out = np.asarray(scales.state_std)[:, None]
    found = np.asarray(scales.linear) * out
    np.testing.assert_allclose(found[:, :2] / np.asarray(scales.state_std), (np.eye(2) - gain @ B) @ A, atol=0.05)
    np.testing.assert_allclose(found[:, 2:] / np.asarray(scales.seen_std), gain, atol=0.05)


def test_what_has_no_dynamics_has_no_proposal():
    with pytest.raises(InputError, match="OnePassSMC"):
        new_proposal(jax.random.key(0), STILL)
    with pytest.raises(InputError, match="gru"):
        new_proposal(jax.random.key(0), MOVING, "lstm")
