"""Streams drawn from a model: what it names is drawn with them, or taken as it is passed."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import ModelError
from pfbr.models import GaussianMean, LinearDynamics, LogisticRegression
from pfbr.models.simulate import simulate
from pfbr.training.tasks import ModelFamily

X = np.array([0.4, -1.1])


class Drift(pfbr.StateSpaceModel):
    """x moves by dt × (inputs + params), without noise; it is seen as it is, and the clock beside it."""

    dim: int = eqx.field(static=True, default=1, init=False)

    def sample_prior(self, key, *, params):
        return params[None]

    def log_prior(self, x, *, params):
        return jnp.zeros(())

    def sample_transition(self, key, x, *, dt, inputs, params):
        return x + dt * (inputs["push"] + params)

    def log_likelihood(self, x, observation, *, time):
        return jnp.zeros(())

    def sample_observation(self, key, x, *, time):
        return jnp.append(x, time)

    def sample_parameters(self, key):
        return jax.random.normal(key)

    def log_parameters(self, params):
        return jnp.zeros(())

    def sample_inputs(self, key):
        return {"push": jax.random.normal(key)}

    def sample_dt(self, key):
        return jax.random.exponential(key)


class NoInputs(LogisticRegression):
    sample_inputs = pfbr.Model.sample_inputs


def test_a_static_unknown_stays_and_a_moving_one_moves_before_the_first_observation():
    drawn = simulate(jax.random.key(0), GaussianMean(2, observation_std=1e-3), 5)
    assert drawn.observations.shape == drawn.truths.shape == (5, 2)
    assert drawn.dt is drawn.inputs is drawn.params is drawn.times is None
    np.testing.assert_array_equal(drawn.truths, np.broadcast_to(drawn.truths[0], (5, 2)))
    np.testing.assert_allclose(drawn.observations, drawn.truths, atol=6e-3)
    A = np.array([[0.0, -0.9], [0.9, 0.0]])
    system = LinearDynamics(A, np.eye(2), transition_std=1e-4, observation_std=1e-4)
    drawn = simulate(jax.random.key(0), system, 3, at=jnp.asarray(X))
    np.testing.assert_allclose(drawn.truths[0], A @ X, atol=1e-3)
    np.testing.assert_allclose(drawn.truths[2], A @ A @ A @ X, atol=1e-3)
    np.testing.assert_allclose(drawn.observations, drawn.truths, atol=1e-3)


def test_simulated_streams_have_the_covariance_of_the_model():
    """Var o_1 = B (A P Aᵀ + Q) Bᵀ + R: one move, then one observation. 4000 streams, z = 6."""
    model = LinearDynamics([[0.9, 0.2], [-0.1, 0.7]], [[1.0, 0.5]], prior_std=1.1)
    streams = jax.jit(jax.vmap(lambda k: ModelFamily(model).sample(k, 1).observations[0, 0]))
    draws = streams(jax.random.split(jax.random.key(1), 4000))
    A, Q, B, R, _, cov = (np.asarray(m) for m in model.linear_gaussian()[:6])
    expected = (B @ (A @ cov @ A.T + Q) @ B.T + R).item()
    assert abs(float(np.var(draws)) / expected - 1) < 6 * np.sqrt(2 / 4000)


def expected_path(drawn):
    steps = np.asarray(drawn.dt) * (np.asarray(drawn.inputs["push"]) + float(drawn.params))
    return float(drawn.params) + np.cumsum(steps)


def test_what_a_model_names_is_drawn_and_given():
    drawn = jax.jit(lambda key: simulate(key, Drift(), 6))(jax.random.key(2))
    assert np.all(np.asarray(drawn.dt) > 0)
    assert len(np.unique(drawn.inputs["push"])) == 6
    np.testing.assert_allclose(drawn.truths[:, 0], expected_path(drawn), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(drawn.observations[:, 0], drawn.truths[:, 0])
    np.testing.assert_allclose(drawn.times, np.cumsum(drawn.dt), rtol=1e-6)
    np.testing.assert_allclose(drawn.observations[:, 1], drawn.times, rtol=1e-6)


def test_what_is_passed_is_taken_as_it_is():
    """An elapsed time of zero is another report at the same instant: the unknown stays."""
    dt, push = jnp.array([0.5, 0.0, 2.0]), jnp.array([1.0, 100.0, -1.0])
    drawn = simulate(jax.random.key(3), Drift(), 3, dt=dt, inputs={"push": push}, params=jnp.asarray(0.25))
    np.testing.assert_array_equal(drawn.dt, dt)
    np.testing.assert_array_equal(drawn.inputs["push"], push)
    assert float(drawn.params) == 0.25
    np.testing.assert_allclose(drawn.truths[:, 0], expected_path(drawn), rtol=1e-5)
    assert drawn.truths[1, 0] == drawn.truths[0, 0]
    np.testing.assert_allclose(drawn.times, [0.5, 0.5, 2.5])


def test_the_same_key_gives_the_same_stream_whatever_is_passed():
    """Passing what would have been drawn changes nothing else."""
    first = simulate(jax.random.key(4), Drift(), 4)
    again = simulate(jax.random.key(4), Drift(), 4, dt=first.dt, inputs=first.inputs, params=first.params)
    assert eqx.tree_equal(first, again)


def test_inputs_that_nobody_can_draw_are_asked_for():
    with pytest.raises(ModelError, match=r"NoInputs names `inputs`.*pass the inputs"):
        simulate(jax.random.key(0), NoInputs(2), 3)
    drawn = simulate(jax.random.key(0), NoInputs(2), 3, inputs=jnp.ones((3, 2)))
    assert drawn.observations.shape == (3, 1)
