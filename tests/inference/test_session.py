"""One observation at a time gives what the functions give; what cannot be used is refused and changes nothing."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.baselines import OnePassSMC
from pfbr.errors import InputError, LikelihoodError, ModelError, PfbrError
from pfbr.inference.method import step_key
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics

MODEL = GaussianMean(2, observation_std=1.0)
SYSTEM = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])
STREAM = np.array([[0.4, -1.2], [0.9, 0.1], [-0.3, 0.8], [1.4, -0.2]], np.float32)


def session_of(model=MODEL, **settings):
    return pfbr.Session(model, **{"method": "gaussian", "num_particles": 32, **settings})


class Ruled(GaussianMean):
    """Uniform noise: an observation further than one away is impossible; one above 100 has no likelihood at all."""

    def log_likelihood(self, x, observation):
        near = jnp.all(jnp.abs(observation - x) < 1.0)
        value = jnp.where(near, -0.1 * jnp.sum((observation - x) ** 2), -jnp.inf)
        return jnp.where(observation[0] > 100, jnp.nan, value)

    def sample_observation(self, key, x):
        return x + jax.random.uniform(key, (2,), minval=-1.0)


@pytest.mark.parametrize("model", [MODEL, SYSTEM], ids=["static", "dynamics"])
def test_a_session_a_run_and_the_functions_give_the_same_particles(model):
    """One key protocol: step m has the key fold_in(key, m), the start is step 0."""
    key = jax.random.key(5)
    session, method = session_of(model, key=5), pfbr.as_method("gaussian", model)
    state = pfbr.init(key, method, model, num_particles=32)
    trace = pfbr.run(model, STREAM, method="gaussian", key=key, num_particles=32)
    step = eqx.filter_jit(pfbr.step)
    for m, observation in enumerate(STREAM, start=1):
        posterior = session.update(observation)
        state, _ = step(step_key(key, m), method, model, state, jnp.asarray(observation))
        np.testing.assert_allclose(posterior.particles, method.particles(state.own).points, atol=1e-5)
        np.testing.assert_allclose(posterior.particles, trace.particles[m - 1], atol=1e-4)
    assert session.stage == int(state.stage) == 4


def test_many_streams_are_single_streams():
    streams, key = np.stack([STREAM, STREAM[::-1] + 1.0]), jax.random.key(2)
    together = pfbr.run(SYSTEM, streams, method="gaussian", key=key, num_particles=32)
    assert together.particles.shape == (2, 4, 32, 2)
    for s in range(2):
        own = jax.random.fold_in(key, s)
        single = pfbr.run(SYSTEM, streams[s], method="gaussian", key=own, num_particles=32)
        np.testing.assert_allclose(together.particles[s], single.particles, atol=1e-4)


def test_a_session_agrees_with_the_formula():
    truth = kalman(MODEL, jnp.asarray(STREAM))
    session = session_of()
    for observation in STREAM:
        posterior = session.update(observation)
    np.testing.assert_allclose(posterior.mean(), truth.mean[-1], atol=0.01)
    np.testing.assert_allclose(posterior.cov(), truth.cov[-1], atol=0.01)


def test_a_posterior_stays_when_the_session_goes_on():
    session = session_of()
    first = session.update(STREAM[0])
    before = first.particles.copy(), first.mean().copy()
    session.update(STREAM[1])
    np.testing.assert_array_equal(first.particles, before[0])
    np.testing.assert_array_equal(first.mean(), before[1])
    assert "32 particles in 2-d" in repr(first)


WRONG_OBSERVATIONS = {
    "wrong shape": ([1.0, 2.0, 3.0], r"shape \(2,\).*got \(3,\)"),
    "a number": (1.0, r"shape \(2,\)"),
    "a whole stream": (STREAM, r"pfbr\.run"),
    "a part of it missing": ([1.0, np.nan], "observed"),
    "infinity": ([np.inf, 0.0], r"inf at index \(0,\)"),
    "too large for float32": ([1e60, 0.0], "inf"),
    "a string": ("one, two", "array of numbers"),
    "a ragged list": ([[1.0], [1.0, 2.0]], "array of numbers"),
    "a dictionary": ({"o": 1.0}, "array of numbers"),
    "empty": ([], r"shape \(2,\)"),
    "complex": ([0.5 + 1j, 0.2], "complex"),
}


class Joint(GaussianMean):
    """One number for the whole observation, which cannot leave a part of it out."""

    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum((observation - x) ** 2) / self.observation_std**2


@pytest.mark.parametrize("name", WRONG_OBSERVATIONS)
def test_a_refused_observation_changes_nothing(name):
    wrong, message = WRONG_OBSERVATIONS[name]
    session, untouched = session_of(Joint(2)), session_of(Joint(2))
    session.update(STREAM[0])
    untouched.update(STREAM[0])
    with pytest.raises(InputError, match=message):
        session.update(wrong)
    assert session.stage == 1
    np.testing.assert_array_equal(session.update(STREAM[1]).particles, untouched.update(STREAM[1]).particles)


@pytest.mark.parametrize("value", [50.0, 200.0], ids=["impossible everywhere", "nan"])
def test_an_observation_without_posterior_is_refused_and_changes_nothing(value):
    session = session_of(Ruled(2), num_particles=64)
    posterior = session.update([0.3, 0.2])  # impossible at some particles only: fine
    assert 0 < posterior.info.possible < 1
    assert np.all(np.isfinite(posterior.particles))
    before = session.posterior.particles.copy()
    with pytest.raises(LikelihoodError, match="observation 2"):
        session.update([value, 0.0])
    np.testing.assert_array_equal(session.posterior.particles, before)
    assert session.stage == 1
    assert np.all(np.isfinite(session.update([0.2, 0.3]).particles))


def test_a_run_names_the_observation_without_posterior():
    good, bad = [0.1, 0.1], [50.0, 0.0]
    with pytest.raises(LikelihoodError, match="observation 2 "):
        pfbr.run(Ruled(2), [good, bad, good], method="gaussian", num_particles=64)
    with pytest.raises(LikelihoodError, match="observation 3 of stream 2"):
        pfbr.run(Ruled(2), [[good] * 3, [good, good, bad]], method="gaussian", num_particles=64)


WRONG_STARTS = {
    "a string for a key": (lambda: session_of(key="0"), InputError, "key"),
    "a negative seed": (lambda: session_of(key=-1), InputError, "seed"),
    "three numbers for a key": (lambda: session_of(key=jnp.zeros(3)), InputError, "one JAX key"),
    "two keys": (lambda: session_of(key=jax.random.split(jax.random.key(0))), InputError, "one JAX key"),
    "a class for a model": (lambda: session_of(GaussianMean), ModelError, "instance"),
    "a string for a model": (lambda: session_of("mixture"), ModelError, r"pfbr\.Model"),
    "no such method": (lambda: session_of(method="paper"), InputError, "there is no method 'paper'"),
    "a number for a method": (lambda: session_of(method=3), InputError, "`method` must be a name"),
    "no particles": (lambda: session_of(num_particles=0), InputError, "at least 2"),
    "half a particle": (lambda: session_of(num_particles=2.5), InputError, "whole number"),
    "true particles": (lambda: session_of(num_particles=True), InputError, "whole number"),
    "negative undo": (lambda: session_of(undo=-1), InputError, "undo"),
    "half an undo": (lambda: session_of(undo=1.5), InputError, "undo"),
    "negative history": (lambda: session_of(history=-1), InputError, "history"),
    "an empty stream": (lambda: pfbr.run(MODEL, np.zeros((0, 2))), InputError, "empty"),
    "a stream of another shape": (lambda: pfbr.run(MODEL, np.zeros((4, 3))), InputError, r"\(T, 2\)"),
    "one observation as a stream": (lambda: pfbr.run(MODEL, np.zeros(2)), InputError, r"\(T, 2\)"),
    "a rival of moving unknowns": (lambda: session_of(method="smc"), InputError, "StateSpaceModel"),
}


@pytest.mark.parametrize("name", WRONG_STARTS)
def test_what_cannot_be_used_is_refused(name):
    start, kind, message = WRONG_STARTS[name]
    with pytest.raises(kind, match=message) as caught:
        start()
    assert isinstance(caught.value, PfbrError)


def test_a_single_value_may_come_as_a_number():
    plain = session_of(GaussianMixture()).update(0.5).particles
    np.testing.assert_array_equal(plain, session_of(GaussianMixture()).update([0.5]).particles)


@pytest.mark.parametrize("model", [MODEL, SYSTEM], ids=["static", "dynamics"])
def test_retracted_observations_leave_no_trace(model):
    session, other = session_of(model, undo=2), session_of(model, undo=2)
    with pytest.raises(InputError, match="no observation yet"):
        session.retract()
    first = session.update([0.5, 0.2])
    other.update([0.5, 0.2])
    second = session.update([90.0, 90.0])  # a slip
    session.update([-3.0, 1.0])
    np.testing.assert_array_equal(session.retract().particles, second.particles)
    np.testing.assert_array_equal(session.retract().particles, first.particles)
    assert session.stage == 1
    with pytest.raises(InputError, match="used up"):
        session.retract()
    np.testing.assert_array_equal(session.update([0.1, 0.3]).particles, other.update([0.1, 0.3]).particles)


def test_what_cannot_be_taken_back_is_refused_and_nothing_changes():
    moving = session_of(SYSTEM)
    before = moving.update([0.5, 0.2])
    with pytest.raises(InputError, match="does not move"):
        moving.retract([0.5, 0.2])
    np.testing.assert_array_equal(moving.posterior.particles, before.particles)
    rival = session_of(method=OnePassSMC())
    rival.update([0.5, 0.2])
    with pytest.raises(InputError, match="cannot take back an earlier observation"):
        rival.retract([0.5, 0.2])


def test_a_velocity_that_reads_the_observation_refuses_to_take_one_back():
    """It would take the observation in once more: the inverse likelihood looks to it like the likelihood."""
    from pfbr.inference.pretrained.catalogue import load_shipped

    operator = load_shipped("pfbr.paper.operators", "gaussian-2-paper")
    session = pfbr.Session(GaussianMean(2), method=operator, num_particles=32)
    session.update([1.0, 0.5])
    with pytest.raises(InputError, match="reads the observation itself"):
        session.retract([1.0, 0.5])
