"""Kalman's filter by derivatives and by sigma points: exact on linear models, and they follow a range."""

import jax
import numpy as np
import pytest

from benchmarks.streams.brute_force import distances, moments
from benchmarks.streams.catalogue import PROBLEMS
from benchmarks.streams.kalman_rivals import EKF, UKF, observing


@pytest.mark.parametrize("kind", [EKF, UKF])
@pytest.mark.parametrize("name", ["linear-correlated", "linear-singular"])
def test_linear_models_are_kalmans(kind, name):
    problem = PROBLEMS[name]
    simulated = problem.simulate(1000).first(30)
    found = moments(jax.random.key(0), kind(observing(name)), problem.model, simulated.stream, 2)
    truth = problem.truth(1000).first(30)
    assert np.max(distances(np.asarray(found[0]), truth)) < 0.01
    unbiased = 8 / 7  # of eight points that stand for a Gaussian in four dimensions
    np.testing.assert_allclose(found[1], unbiased * truth.covariances, atol=0.002 * truth.covariances.max())


@pytest.mark.parametrize("kind", [EKF, UKF])
def test_a_state_seen_by_its_square_is_found_where_it_has_a_sign(kind):
    """x² / 20 = 5 ± 1 under a prior of 10 ± 1: the mode is at 10, its spread about 0.7."""
    problem = PROBLEMS["growth"]
    method = kind(observing("growth"))
    state = method.init(jax.random.key(0), problem.model, 2)
    state = type(state)(np.full(1, 10.0, np.float32), np.eye(1, dtype=np.float32))
    after = method.corrected(problem.model, state, np.full(1, 5.0, np.float32))
    assert abs(float(after.mean[0]) - 10.0) < 0.1
    assert float(after.cov[0, 0]) == pytest.approx(0.5, abs=0.05)
