"""A session takes an earlier observation back, by the rows it has kept; what it never saw it refuses."""

import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LogisticRegression

MODEL = GaussianMean(2, observation_std=1.0)
STREAM = np.array([[0.4, -1.2], [9.0, 8.0], [-0.3, 0.8], [1.4, -0.2]], np.float32)


def test_a_slip_of_long_ago_is_taken_back_in_closed_form():
    session = pfbr.Session(MODEL, num_particles=64)
    for row in STREAM:
        session.update(row)
    posterior = session.retract(STREAM[1])
    truth = kalman(session.model, jnp.delete(jnp.asarray(STREAM), 1, axis=0))
    np.testing.assert_allclose(posterior.mean(), truth.mean[-1], atol=1e-3)
    np.testing.assert_allclose(posterior.cov(), truth.cov[-1], atol=0.01)
    fresh = pfbr.Session(session.model, num_particles=64)
    for row in np.delete(STREAM, 1, axis=0):
        fresh.update(row)
    np.testing.assert_allclose(session.log_evidence, fresh.log_evidence, atol=1e-2)
    assert session.stage == 3
    np.testing.assert_allclose(
        session.update(STREAM[1]).mean(), kalman(session.model, jnp.asarray(STREAM)).mean[-1], atol=1e-3
    )


def test_what_was_never_seen_is_refused_and_nothing_changes():
    session = pfbr.Session(MODEL, num_particles=64)
    for row in STREAM:
        session.update(row)
    before = session.posterior
    with pytest.raises(InputError, match="not among the observations"):
        session.retract([0.4, -1.3])
    session.retract(STREAM[0])
    with pytest.raises(InputError, match="not among the observations"):
        session.retract(STREAM[0])  # once is all it came
    session.retract()  # the taking back itself is undone
    np.testing.assert_array_equal(session.posterior.particles, before.particles)
    assert session.stage == 4


def test_inputs_belong_to_the_row():
    session = pfbr.Session(LogisticRegression(2), num_particles=64)
    rows = [([1.0], [0.2, 1.0]), ([0.0], [0.3, -1.0]), ([1.0], [0.1, -0.5])]
    for label, covariates in rows:
        session.update(label, inputs=covariates)
    with pytest.raises(InputError, match="not among the observations"):
        session.retract([1.0], inputs=[0.3, -1.0])
    posterior = session.retract([1.0], inputs=[0.2, 1.0])
    fresh = pfbr.Session(LogisticRegression(2), num_particles=64)
    for label, covariates in rows[1:]:
        expected = fresh.update(label, inputs=covariates)
    sd = expected.std()
    assert np.all(np.abs(posterior.mean() - expected.mean()) < 0.5 * sd)  # 64 particles each
    np.testing.assert_allclose(session.log_evidence, fresh.log_evidence, atol=0.05)


def test_where_nothing_is_kept_nothing_can_be_taken_back():
    session = pfbr.Session(MODEL, num_particles=64, history=0)
    session.update([0.5, 0.2])
    with pytest.raises(InputError, match="history=0"):
        session.retract([0.5, 0.2])
