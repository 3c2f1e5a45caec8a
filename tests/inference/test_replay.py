"""Late, withdrawn and corrected reports: bit for bit what the stream gives where all came right and in order."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.baselines import BootstrapSMC
from pfbr.errors import InputError, LikelihoodError
from pfbr.inference.adaptive.static.target import evaluate
from pfbr.inference.info import Info
from pfbr.inference.method import Stream
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean
from tests.inference.test_forecast import SYSTEM, Walk

RNG = np.random.default_rng(4)
STREAM = RNG.normal(size=(6, 1)).astype(np.float32)
TIMES = np.array([0.4, 1.1, 1.1, 2.0, 3.5, 3.6])
PUSH = RNG.normal(size=6)


def walk(order=range(6), method="exact", **settings) -> pfbr.Session:
    session = pfbr.Session(Walk(), method=method, num_particles=32, **settings)
    for i in order:
        session.update(STREAM[i], time=TIMES[i], inputs=PUSH[i])
    return session


def same(one: pfbr.Session, other: pfbr.Session) -> None:
    np.testing.assert_array_equal(one.posterior.particles, other.posterior.particles)
    assert (one.stage, one.log_evidence) == (other.stage, other.log_evidence)
    further = [session.update([0.7], time=4.0, inputs=0.1) for session in (one, other)]
    np.testing.assert_array_equal(further[0].particles, further[1].particles)


@pytest.mark.parametrize("method", ["exact", "smc"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 5, 4), (1, 0, 2, 3, 4, 5), (5, 3, 0, 4, 1, 2)], ids=str)
def test_shuffled_arrivals_are_the_ordered_stream(order, method):
    session = walk(order, method)
    same(session, walk(method=method))


def test_shuffled_arrivals_are_kalmans():
    dt = jnp.asarray(np.diff(TIMES, prepend=0.0), jnp.float32)
    truth = kalman(Walk(), Stream(jnp.asarray(STREAM), dt, jnp.asarray(PUSH, jnp.float32)))
    session = walk((3, 5, 0, 1, 4, 2))
    assert session.log_evidence == pytest.approx(float(truth.log_evidence[-1]), abs=1e-4)
    memory = session._state.own.memory
    np.testing.assert_allclose(memory.mean, truth.mean[-1], atol=1e-4)
    np.testing.assert_allclose(memory.cov, truth.cov[-1], atol=1e-4)


def test_a_retracted_report_has_never_come_and_a_replaced_one_came_right():
    without = walk([0, 1, 2, 4, 5])
    session = walk()
    assert session.retract(number=4).info.log_evidence == without.log_evidence
    same(session, without)
    session = walk()
    session.retract(time=2.0)
    same(session, walk([0, 1, 2, 4, 5]))
    slip = walk([0, 1, 2, 3])
    slip.update([99.0], time=TIMES[4], inputs=PUSH[4])
    slip.update(STREAM[5], time=TIMES[5], inputs=PUSH[5])
    slip.replace(STREAM[4], number=5)  # its inputs stay
    same(slip, walk())
    gap = walk()
    gap.replace(None, time=3.5)
    other = walk(range(4))
    other.update(None, time=TIMES[4], inputs=PUSH[4])
    other.update(STREAM[5], time=TIMES[5], inputs=PUSH[5])
    same(gap, other)


def test_reports_without_times_are_counted():
    """A model that does not look at time: a report taken out takes its move with it."""
    stream = RNG.normal(size=(5, 2))
    session, other = (pfbr.Session(SYSTEM, method="exact", num_particles=32) for _ in range(2))
    for i, y in enumerate(stream):
        session.update(y)
        if i != 2:
            other.update(y)
    session.retract(number=3)
    np.testing.assert_array_equal(session.posterior.particles, other.posterior.particles)
    session.replace(stream[2])  # the last one
    other.retract()
    other.update(stream[2])
    np.testing.assert_array_equal(session.posterior.particles, other.posterior.particles)


WRONG = {
    "earlier than what is kept": (lambda s: s.update([0.0], time=0.2, inputs=0.0), "larger `undo`"),
    "before the start": (lambda s: s.update([0.0], time=-1.0, inputs=0.0), "larger `undo`"),
    "a number that is not kept": (lambda s: s.retract(number=1), r"numbers 4 to 6.*larger `undo`"),
    "a number beyond": (lambda s: s.retract(number=7), "from 1 to 6"),
    "half a number": (lambda s: s.replace([0.0], number=1.5), "`number`"),
    "another time": (lambda s: s.retract(time=2.2), "no report with that time"),
    "number and time": (lambda s: s.retract(number=5, time=3.5), "not by both"),
    "value and number": (lambda s: s.retract([0.0], number=5), "one of them"),
    "a bad observation": (lambda s: s.replace([0.0, 1.0], number=5), "shape"),
    "an infinite one": (lambda s: s.update([np.inf], time=3.0, inputs=0.0), "inf"),
    "no inputs": (lambda s: s.update([0.0], time=3.0), "names `inputs`"),
    "other inputs": (lambda s: s.replace([0.0], number=5, inputs=[1.0, 2.0]), "`inputs`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_put_in_place_is_refused_and_nothing_changes(name):
    wrong, message = WRONG[name]
    session = walk(undo=3)
    with pytest.raises(InputError, match=message):
        wrong(session)
    same(session, walk(undo=3))


def test_two_reports_at_one_time_are_told_apart_by_number():
    session = walk()
    with pytest.raises(InputError, match="reports 2, 3 have that time"):
        session.retract(time=1.1)
    session.retract(number=2)
    same(session, walk([0, 2, 3, 4, 5]))


def test_nothing_to_change():
    session = walk([])
    for call in (session.retract, lambda: session.replace([0.0])):
        with pytest.raises(InputError, match="no observation yet"):
            call()
    with pytest.raises(InputError, match="none of its reports"):
        walk([0, 1], undo=0).update([0.0], time=0.5, inputs=0.0)


class Refusing(Walk):
    """A report above 50 has no likelihood."""

    def log_likelihood(self, x, observation):
        return jnp.where(observation > 50, jnp.nan, jax.scipy.stats.norm.logpdf(observation, x, 0.5))


class Checked(BootstrapSMC):
    """Says where the likelihood is no number."""

    def update(self, key, model, state, observation):
        after, info = super().update(key, model, state, observation)
        values = jax.vmap(model.log_likelihood, (0, None))(state.points, observation)
        return after, Info(log_predictive=info.log_predictive, undefined=jnp.mean(jnp.isnan(values)))


def test_a_failed_replay_leaves_the_session_as_it_was():
    session = pfbr.Session(Refusing(), method=Checked(), num_particles=32)
    for i in range(4):
        session.update(STREAM[i], time=TIMES[i], inputs=PUSH[i])
    before = session.posterior.particles, session.log_evidence, [one.number for one in session._past]
    for call in (
        lambda: session.update([60.0], time=1.5, inputs=0.0),
        lambda: session.replace([60.0], number=2),
    ):
        with pytest.raises(LikelihoodError, match=r"observation [24] "):
            call()
        np.testing.assert_array_equal(session.posterior.particles, before[0])
        assert (session.log_evidence, [one.number for one in session._past]) == before[1:]
        assert (session.stage, session._clock.now) == (4, TIMES[3])


def test_static_unknowns_have_the_same_target_in_any_order():
    model, stream = GaussianMean(2, observation_std=1.0), RNG.normal(size=(12, 2))
    states = []
    for order in (range(12), RNG.permutation(12)):
        session = pfbr.Session(model, num_particles=64, undo=0)  # a late row is absorbed: nothing need be kept
        for i in order:
            session.update(stream[i], time=float(i))
        assert (session.stage, session._clock.now) == (12, 11.0)
        states.append(session._state.own)
    points = jnp.asarray(RNG.normal(size=(5, 2)), jnp.float32)
    row = jax.tree.map(lambda leaf: leaf[0], states[0].past.rows)
    target = pfbr.as_method("auto", model)._target(model)
    values = [evaluate(target, points, points[0], state.surrogate, state.past, row).past for state in states]
    np.testing.assert_allclose(values[0], values[1], atol=1e-5)
    truth = kalman(model, jnp.asarray(stream, jnp.float32))
    for state in states:
        np.testing.assert_allclose(jnp.exp(state.log_weights) @ state.points, truth.mean[-1], atol=0.01)
