"""Time, inputs and gaps through sessions and runs, against Kalman's filter."""

import datetime

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError, ModelError
from pfbr.inference.method import Stream
from pfbr.metrics.truth import kalman
from pfbr.models import LinearGaussian

A = np.array([[0.0, 1.0], [-0.5, -0.3]])
NOISE = np.array([[1.0, 0.6], [0.6, 0.8]])  # of the sensors: correlated


def flow_of(dt):
    """exp(A dt) and the covariance of its noise, by the matrix exponential of the block matrix (Van Loan 1978)."""
    block = jnp.zeros((4, 4)).at[:2, :2].set(-A).at[:2, 2:].set(0.4 * jnp.eye(2)).at[2:, 2:].set(A.T)
    power = jax.scipy.linalg.expm(block * dt)
    step = power[2:, 2:].T
    return step, step @ power[:2, 2:]


class Oscillator(pfbr.StateSpaceModel):
    """A damped oscillator in continuous time, pushed by `inputs`, seen by two sensors with correlated noise."""

    dim: int = 2

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def prior_from_normal(self, z):
        return z

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x))

    def sample_transition(self, key, x, *, dt, inputs):
        return self.transition_from_normal(x, jax.random.normal(key, (2,)), dt=dt, inputs=inputs)

    def transition_from_normal(self, x, z, *, dt, inputs):
        step, cov = flow_of(dt)
        return step @ x + dt * inputs["push"] + jnp.linalg.cholesky(cov + 1e-7 * jnp.eye(2)) @ z

    def log_transition(self, x_next, x, *, dt, inputs):
        step, cov = flow_of(dt)
        mean = step @ x + dt * inputs["push"]
        return jax.scipy.stats.multivariate_normal.logpdf(x_next, mean, cov + 1e-7 * jnp.eye(2))

    def log_likelihood(self, x, observation, *, observed):
        noise = jnp.where(observed[:, None] & observed, NOISE, jnp.eye(2))
        left = jnp.where(observed, observation - x, 0.0)
        missing = jnp.sum(~observed) * 0.5 * jnp.log(2 * jnp.pi)
        return jax.scipy.stats.multivariate_normal.logpdf(left, jnp.zeros(2), noise) + missing

    def linear_gaussian(self, *, dt, inputs):
        step, cov = flow_of(dt)
        eye = jnp.eye(2)
        return LinearGaussian(step, cov, eye, jnp.asarray(NOISE), jnp.zeros(2), eye, a=dt * inputs["push"])


@pytest.fixture(scope="module")
def stream():
    """Irregular times, two reports at one instant, a gap of everything, gaps of one sensor."""
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(7, 2)).astype(np.float32)
    observations[2, 1] = observations[4, 0] = np.nan
    observations[5] = np.nan
    times = 1.7e9 + np.array([0.5, 0.8, 2.4, 2.4, 3.0, 5.5, 5.7])  # epoch seconds: float32 would lose all of it
    return observations, times, {"push": rng.normal(size=(7, 2)).astype(np.float32)}


@pytest.fixture(scope="module")
def truth(stream):
    observations, times, inputs = stream
    seen = ~np.isnan(observations)
    dt = np.diff(times, prepend=1.7e9)
    rows = Stream(jnp.where(seen, observations, 0), jnp.asarray(dt, jnp.float32), inputs, jnp.asarray(seen))
    return kalman(Oscillator(), rows)


def test_irregular_times_controls_and_gaps_as_kalman_has_them(stream, truth):
    observations, times, inputs = stream
    session = pfbr.Session(Oscillator(), method="gaussian", start=1.7e9)
    for m, (y, time) in enumerate(zip(observations, times, strict=True)):
        given = None if np.isnan(y).all() else y
        posterior = session.update(given, time=time, inputs={"push": inputs["push"][m]})
        np.testing.assert_allclose(posterior.mean(), truth.mean[m], atol=0.02)
        np.testing.assert_allclose(posterior.cov(), truth.cov[m], atol=0.03)
    trace = pfbr.run(Oscillator(), observations, times=times, inputs=inputs, method="gaussian", start=1.7e9)
    np.testing.assert_allclose(trace.mean(), truth.mean, atol=0.02)


def test_the_default_method_has_the_evidence_too(stream, truth):
    observations, times, inputs = stream
    trace = pfbr.run(Oscillator(), observations, times=times, inputs=inputs, start=1.7e9, num_particles=256)
    np.testing.assert_allclose(trace.mean(), truth.mean, atol=0.1)
    np.testing.assert_allclose(trace.info.log_evidence, truth.log_evidence, atol=0.1)
    assert trace.info.log_predictive[5] == 0  # nothing was observed


def test_dates_are_times_with_a_unit(stream, truth):
    observations, times, inputs = stream
    begin = datetime.datetime(2024, 2, 29, 12)
    dates = [begin + datetime.timedelta(hours=float(t - 1.7e9)) for t in times]
    trace = pfbr.run(
        Oscillator(), observations, times=dates, inputs=inputs, method="gaussian", start=begin, time_unit="h"
    )
    np.testing.assert_allclose(trace.mean(), truth.mean, atol=0.02)
    with pytest.raises(InputError, match="time_unit"):
        pfbr.run(Oscillator(), observations, times=dates, inputs=inputs)


def test_a_stream_of_gaps_keeps_the_spread_of_the_prior():
    class Still(pfbr.Model):
        dim: int = 2

        def sample_prior(self, key):
            return 3.0 * jax.random.normal(key, (2,))

        def log_prior(self, x):
            return jnp.sum(jax.scipy.stats.norm.logpdf(x, 0, 3.0))

        def log_likelihood(self, x, observation):
            return jax.scipy.stats.norm.logpdf(observation, x)  # one for each component

    session = pfbr.Session(Still())
    begin = None
    for _ in range(20):
        posterior = session.update([np.nan, np.nan])
        begin = posterior.std() if begin is None else begin
        assert posterior.info.log_evidence == 0
    np.testing.assert_allclose(posterior.std(), begin, rtol=1e-5)
    half = session.update([1.0, np.nan])  # one component says something of its own unknown only
    assert half.std()[0] < 1.5
    np.testing.assert_allclose(half.std()[1], begin[1], rtol=0.15)


def test_what_a_model_needs_is_asked_for_by_name(stream):
    session = pfbr.Session(Oscillator(), method="gaussian")
    with pytest.raises(InputError, match="Oscillator names `inputs`"):
        session.update([0.1, 0.2])
    with pytest.raises(InputError, match="no method of GaussianMean names them"):
        pfbr.Session(pfbr.models.GaussianMean(2)).update([0.1, 0.2], inputs=[1.0])
    push = {"push": np.zeros(2)}
    session.update([0.1, 0.2], time=2.0, inputs=push)
    with pytest.raises(InputError, match="before the `start`"):
        session.update([0.1, 0.2], time=-1.0, inputs=push)
    with pytest.raises(InputError, match="shapes"):
        session.update([0.1, 0.2], time=3.0, inputs={"push": np.zeros(3)})
    with pytest.raises(InputError, match="finite"):
        session.update([0.1, 0.2], time=np.inf, inputs=push)
    assert session.stage == 1
    with pytest.raises(InputError, match="go back at observation 3"):
        pfbr.run(Oscillator(), np.zeros((3, 2)), times=[1.0, 2.0, 1.5], inputs={"push": np.zeros((3, 2))})


def test_a_misspelt_need_is_named():
    class Misspelt(pfbr.models.GaussianMean):
        def log_likelihood(self, x, observation, *, input):
            return 0.0

    with pytest.raises(ModelError, match=r"log_likelihood` names `input`.*Did you mean `inputs`"):
        pfbr.Session(Misspelt(2))
