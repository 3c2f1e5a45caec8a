"""Methods of Kalman's kind are exact for the moments they see: the ensemble filter, and the flow of Daum and Huang."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr import baselines
from pfbr.particles.particles import weighted_cov, weighted_mean
from tests.baselines.streams import STILL


@pytest.mark.parametrize("name", ["enkf", "daum-huang", "daum-huang-local"])
def test_one_update_is_kalmans_of_the_sample_moments(name):
    """16 particles, their own mean and covariance; no noise, no rate."""
    method, observation = baselines.make(name, STILL), np.array([1.0, -2.0])

    @eqx.filter_jit
    def step(observation):
        state = method.init(jax.random.key(0), STILL, 16)
        after, _ = method.update(jax.random.key(1), STILL, state, observation)
        return [(weighted_mean(p), weighted_cov(p)) for p in (method.particles(state), method.particles(after))]

    (mean, cov), (after, cov_after) = jax.tree.map(np.asarray, step(jnp.asarray(observation)))
    gain = cov @ np.linalg.inv(cov + np.eye(2))
    np.testing.assert_allclose(after, mean + gain @ (observation - mean), atol=2e-4)
    np.testing.assert_allclose(cov_after, cov - gain @ cov, atol=2e-4)


def test_fewer_particles_than_unknowns_leave_empty_directions_empty():
    """Three particles in five dimensions span a plane, and stay in it."""
    from pfbr.models import GaussianMean

    model = GaussianMean(5, observation_std=1.0)
    method = baselines.EnKF()

    @jax.jit
    def step():
        state = method.init(jax.random.key(0), model, 3)
        return state.points, method.update(jax.random.key(1), model, state, jnp.ones(5))[0].points

    before, after = (np.asarray(a, np.float64) for a in step())
    assert np.all(np.isfinite(after))
    plane = before[1:] - before[0]
    off = after - before[0]
    left = off - off @ np.linalg.pinv(plane) @ plane
    assert np.abs(left).max() < 1e-3
