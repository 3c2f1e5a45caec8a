"""A table in one scan is as many updates; a recorded stream goes on live as a session that saw every row."""

import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError, LikelihoodError
from pfbr.models import GaussianMean
from tests.inference.test_forecast import Walk
from tests.inference.test_replay import PUSH, STREAM, TIMES, Checked, Refusing, walk

MEAN = GaussianMean(2, observation_std=1.0)


def close(one: pfbr.Session, other: pfbr.Session) -> None:
    """The same but for rounding: a scan is compiled by itself."""
    np.testing.assert_allclose(one.posterior.particles, other.posterior.particles, atol=2e-5)
    np.testing.assert_allclose(one.posterior.weights, other.posterior.weights, atol=1e-5)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-4)
    assert (one.stage, one._clock.now) == (other.stage, other._clock.now)


def test_a_table_is_as_many_updates():
    session, other = walk(range(2), undo=3), walk(undo=3)
    trace = session.update_many(STREAM[2:], times=TIMES[2:], inputs=PUSH[2:])
    assert trace.particles.shape == (4, 32, 1)
    assert trace.session is session
    close(session, other)
    assert trace.info.log_evidence[-1] == pytest.approx(other.log_evidence, abs=1e-4)
    assert trace.scores().crps.shape == (4, 1)
    for one in (session, other):  # the last three reports are kept, as from updates
        assert [kept.number for kept in one._past] == [4, 5, 6]
        one.retract(number=5)
        one.update([0.1], time=3.55, inputs=0.3)
    close(session, other)


def test_a_recorded_stream_goes_on_live():
    """The buffer of a run has room for its rows; its session has room for more, and stays exact."""
    stream = np.random.default_rng(0).normal(size=(140, 2)).astype(np.float32)
    trace = pfbr.run(MEAN, stream[:128], num_particles=64)
    session, other = trace.session, pfbr.Session(MEAN, num_particles=64)
    for y in stream[:128]:
        other.update(y)
    close(session, other)
    for y in stream[128:132]:
        posterior = session.update(y)
        np.testing.assert_allclose(posterior.particles, other.update(y).particles, atol=2e-5)
        assert posterior.info.exact
    assert session.stage == 132
    for _ in range(10):
        last = session.stage
        if not session._past:
            break
        session.retract()
    assert last == 124  # eight states are kept


def test_clocks_and_late_reports_go_on():
    trace = pfbr.run(Walk(), STREAM[:5], times=TIMES[:5], inputs=PUSH[:5], method="exact", num_particles=32)
    session = trace.session
    assert session.predict(times=[3.6], inputs=[0.0]).times[0] == 3.6
    session.update(STREAM[5], time=TIMES[5], inputs=PUSH[5])
    close(session, walk())
    late = walk()
    for one in (session, late):
        one.update([0.2], time=1.5, inputs=0.0)
    close(session, late)


WRONG = {
    "another shape": (lambda s: s.update_many(np.zeros((3, 2)), inputs=np.zeros(3)), InputError, "shape"),
    "many streams": (lambda s: s.update_many(np.zeros((2, 3, 1)), inputs=np.zeros((2, 3))), InputError, "one stream"),
    "no inputs": (lambda s: s.update_many(np.zeros((3, 1))), InputError, "names `inputs`"),
    "back in time": (
        lambda s: s.update_many(np.zeros((2, 1)), times=[2.1, 1.0], inputs=np.zeros(2)),
        InputError,
        "go back at observation 2",
    ),
    "before the last": (
        lambda s: s.update_many(np.zeros((2, 1)), times=[1.2, 5.0], inputs=np.zeros(2)),
        InputError,
        "go back at observation 1: 1.2 after 2.0",
    ),
    "a row without a posterior": (
        lambda s: s.update_many([[0.0], [60.0], [0.0]], inputs=np.zeros(3)),
        LikelihoodError,
        "row 2 of the table",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_refused_table_changes_nothing(name):
    wrong, kind, message = WRONG[name]
    session, other = (pfbr.Session(Refusing(), method=Checked(), num_particles=32) for _ in range(2))
    for one in (session, other):
        for i in range(4):
            one.update(STREAM[i], time=TIMES[i], inputs=PUSH[i])
    with pytest.raises(kind, match=message):
        wrong(session)
    np.testing.assert_array_equal(session.posterior.particles, other.posterior.particles)
    further = [one.update([0.5], time=4.0, inputs=0.0).particles for one in (session, other)]
    np.testing.assert_array_equal(*further)


def test_several_streams_have_no_session():
    trace = pfbr.run(MEAN, jnp.zeros((2, 3, 2)), method="prior", num_particles=8)
    with pytest.raises(InputError, match="several streams"):
        _ = trace.session
