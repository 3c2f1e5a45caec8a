"""Forecasts against Kalman's: irregular times, controls, parameters, names; what cannot be forecast."""

import datetime
from typing import ClassVar

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError, ModelError
from pfbr.models import LinearDynamics, LinearGaussian

SYSTEM = LinearDynamics([[0.9, 0.2], [-0.1, 0.8]], [[1.0, 0.0], [0.3, 0.7]])
STREAM = np.array([[0.4, -1.2], [0.9, 0.1], [-0.3, 0.8], [1.4, -0.2]], np.float32)


class Walk(pfbr.StateSpaceModel):
    """Brownian motion with a push, seen with noise: every forecast is a Gaussian with a formula."""

    dim: int = 1

    def sample_prior(self, key):
        return 2.0 * jax.random.normal(key, (1,))

    def prior_from_normal(self, z):
        return 2.0 * z

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0], 0.0, 2.0)

    def sample_transition(self, key, x, *, dt, inputs):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), dt=dt, inputs=inputs)

    def transition_from_normal(self, x, z, *, dt, inputs):
        return x + inputs * dt + jnp.sqrt(dt) * z

    def log_transition(self, x_next, x, *, dt, inputs):
        return jax.scipy.stats.norm.logpdf(x_next[0], x[0] + inputs * dt, jnp.sqrt(dt))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x, 0.5)

    def sample_observation(self, key, x):
        return x + 0.5 * jax.random.normal(key, (1,))

    def linear_gaussian(self, *, dt, inputs):
        one = jnp.ones((1, 1))
        return LinearGaussian(one, dt * one, one, 0.25 * one, jnp.zeros(1), 4 * one, a=(inputs * dt)[None])


@pytest.fixture(scope="module")
def system():
    session = pfbr.Session(SYSTEM, method="exact", num_particles=256)
    for y in STREAM:
        session.update(y)
    return session


def test_a_forecast_is_kalmans(system):
    """Matched noise: means and covariances of linear dynamics have no Monte Carlo error of their own."""
    forecast = system.predict(horizon=7)
    A, mean, cov = np.asarray(SYSTEM.A), system.posterior.mean(), system.posterior.cov()
    assert forecast.states.mean().shape == forecast.states.std().shape == (7, 2)
    assert forecast.states.quantile([0.05, 0.95]).shape == (2, 7, 2)
    assert forecast.states.samples.shape == forecast.observations.samples.shape == (7, 256, 2)
    assert len(forecast) == 7
    for h in range(7):
        mean, cov = A @ mean, A @ cov @ A.T + np.eye(2)
        np.testing.assert_allclose(forecast.states.mean()[h], mean, atol=1e-3)
        np.testing.assert_allclose(np.cov(forecast.states.samples[h].T), cov, rtol=0.02, atol=0.01)
    B = np.asarray(SYSTEM.B)
    spread = np.sqrt(np.diag(B @ cov @ B.T) + 1)
    np.testing.assert_allclose(forecast.observations.mean()[-1], B @ mean, atol=5 / 16)  # z = 5, with noise of sd 1
    np.testing.assert_allclose(forecast.observations.std()[-1], spread, rtol=5 / np.sqrt(2 * 256))


def test_irregular_times_and_controls_as_the_formula_has_them():
    session = pfbr.Session(Walk(), method="exact", start=1.7e9)
    session.update([1.0], time=1.7e9 + 0.5, inputs=2.0)
    mean, variance = session.posterior.mean()[0], session.posterior.std()[0] ** 2
    times, push = 1.7e9 + np.array([0.5, 0.8, 0.8, 3.0]), np.array([5.0, 1.0, 7.0, -2.0])
    forecast = session.predict(times=times, inputs=push)
    dt = np.diff(times, prepend=1.7e9 + 0.5)
    np.testing.assert_allclose(forecast.states.mean()[:, 0], mean + np.cumsum(push * dt), atol=1e-3)
    np.testing.assert_allclose(forecast.states.std()[:, 0], np.sqrt(variance + np.cumsum(dt)), rtol=0.01)
    np.testing.assert_array_equal(forecast.states.samples[1], forecast.states.samples[2])  # the same instant
    np.testing.assert_array_equal(forecast.times, times)


def test_forecasting_changes_nothing_and_repeats_itself(system):
    other = pfbr.Session(SYSTEM, method="exact", num_particles=256)
    for y in STREAM:
        other.predict(horizon=2)
        other.update(y)
    np.testing.assert_array_equal(other.posterior.particles, system.posterior.particles)
    long, short = system.predict(horizon=7), system.predict(2)
    np.testing.assert_array_equal(system.predict(horizon=7).observations.samples, long.observations.samples)
    np.testing.assert_allclose(short.observations.samples, long.observations.samples[:2], atol=1e-5)
    assert not np.array_equal(long.states.samples[0] - long.states.mean()[0], system.posterior.particles)


def test_dates_are_forecast_in_the_sessions_clock():
    begin = datetime.datetime(2024, 2, 29, 12)
    session = pfbr.Session(Walk(), method="exact", start=begin, time_unit="D")
    session.update([1.0], time=begin + datetime.timedelta(days=1), inputs=0.0)
    ahead = session.predict(horizon=2, inputs=np.zeros(2))
    assert ahead.times.tolist() == [datetime.datetime(2024, 3, 2, 12), datetime.datetime(2024, 3, 3, 12)]
    same = session.predict(times=["2024-03-02T12:00", "2024-03-03T12:00"], inputs=np.zeros(2))
    np.testing.assert_allclose(ahead.states.samples, same.states.samples, atol=1e-6)


class Scaled(pfbr.Model):
    """Counts of a named, positive rate, with an exposure as inputs."""

    unknowns: ClassVar = {"rate": pfbr.positive, "shift": ()}

    def sample_prior(self, key):
        return {"rate": jnp.exp(0.3 * jax.random.normal(key)), "shift": jax.random.normal(jax.random.fold_in(key, 1))}

    def log_prior(self, x):
        rate = jax.scipy.stats.norm.logpdf(jnp.log(x["rate"]), 0.0, 0.3) - jnp.log(x["rate"])
        return rate + jax.scipy.stats.norm.logpdf(x["shift"])

    def log_likelihood(self, x, observation, *, inputs):
        return jax.scipy.stats.norm.logpdf(observation, inputs * x["rate"] + x["shift"], 0.1)

    def sample_observation(self, key, x, *, inputs):
        return inputs * x["rate"] + x["shift"] + 0.1 * jax.random.normal(key, (1,))

    def sample_inputs(self, key):
        return jax.random.normal(key)


def test_static_unknowns_keep_their_names_and_forecast_observations():
    session = pfbr.Session(Scaled(), method="gaussian", num_particles=64)
    posterior = session.update([2.0], inputs=1.5)
    forecast = session.predict(horizon=3, inputs=[0.0, 1.0, 100.0])
    assert forecast.states.mean()["rate"].shape == (3,)
    assert np.all(forecast.states.samples["rate"] > 0)
    np.testing.assert_allclose(forecast.states.mean()["rate"], [posterior.mean()["rate"]] * 3, rtol=0.1)
    rate, shift = (forecast.states.samples[name][0] for name in ("rate", "shift"))
    exact = np.array([0.0, 1.0, 100.0])[:, None] * rate + shift  # path by path, but for the noise
    np.testing.assert_allclose(forecast.observations.samples[..., 0], exact, atol=0.6, rtol=1e-4)


class Unseen(LinearDynamics):
    """It cannot draw observations."""

    sample_observation = pfbr.StateSpaceModel.sample_observation


def test_a_model_without_sample_observation_forecasts_its_states():
    session = pfbr.Session(Unseen(SYSTEM.A, SYSTEM.B), method="exact", num_particles=256)
    session.update(STREAM[0])
    forecast = session.predict(horizon=2)
    assert forecast.states.mean().shape == (2, 2)
    with pytest.raises(ModelError, match="Unseen has no `sample_observation"):
        forecast.observations.mean()


class Level(pfbr.StateSpaceModel):
    """A level whose drift is a parameter."""

    dim: int = 1

    def sample_parameters(self, key):
        return {"drift": jax.random.normal(key)}

    def log_parameters(self, params):
        return jax.scipy.stats.norm.logpdf(params["drift"])

    def sample_prior(self, key):
        return 0.01 * jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0], 0.0, 0.01)

    def sample_transition(self, key, x, *, params):
        return x + params["drift"] + 0.01 * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x, 0.5)

    def sample_observation(self, key, x, *, params):
        return x + 0.001 * jax.random.normal(key, (1,))


@pytest.mark.slow  # parameters beside a state take long to compile
def test_parameters_are_integrated_over():
    session = pfbr.Session(Level(), num_particles=64)
    session.update([1.0])
    forecast = session.predict(horizon=10)
    drift = forecast.parameters.samples["drift"]
    assert drift.std() > 0.2
    np.testing.assert_allclose(np.diff(forecast.states.samples[..., 0], axis=0).mean(axis=0), drift, atol=0.02)


WRONG = {
    "neither": ({}, "`predict\\(horizon=7\\)`"),
    "both": ({"horizon": 2, "times": [1.0]}, "one of the two"),
    "no steps": ({"horizon": 0}, "`horizon` must be at least 1"),
    "half a step": ({"horizon": 1.5}, "`horizon` must be a whole number"),
    "the past": ({"times": [0.1], "inputs": [0.0]}, "before the last observation"),
    "back": ({"times": [3.0, 2.0], "inputs": [0.0, 0.0]}, "go back at number 2"),
    "no number": ({"times": [np.nan], "inputs": [0.0]}, "finite"),
    "no inputs": ({"horizon": 3}, "Walk names `inputs` in `sample_transition`.*3 steps"),
    "too few inputs": ({"horizon": 3, "inputs": [1.0]}, "lead with"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_forecast_is_refused_and_changes_nothing(name):
    settings, message = WRONG[name]
    session = pfbr.Session(Walk(), method="exact")
    before = session.update([1.0], time=1.0, inputs=0.0).particles
    with pytest.raises(InputError, match=message):
        session.predict(**settings)
    np.testing.assert_array_equal(session.posterior.particles, before)
