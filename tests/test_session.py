"""One observation at a time gives what the functions give; what cannot be used is refused and changes nothing."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp
from weights import operator_of

import pfbr
from pfbr.errors import InputError, LikelihoodError, ModelError, PfbrError
from pfbr.inference.session import Posterior
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression
from pfbr.models.simulate import simulate
from pfbr.particles.particles import Particles, normalise

KEY = jax.random.key(0)
MODEL = GaussianMean(2, observation_std=1.0)
SYSTEM = LinearDynamics.random(1, 2)
OPERATOR = pfbr.gaussian_operator()
STREAM = np.asarray(simulate(jax.random.key(1), MODEL, 4).observations)
compiled_step = eqx.filter_jit(pfbr.step)  # one for all tests


class Ruled(GaussianMean):
    """Uniform noise: an observation further than one away is impossible; one above 100 has no likelihood at all."""

    def log_likelihood(self, x, observation):
        near = jnp.all(jnp.abs(observation - x) < 1.0)
        value = jnp.where(near, -0.1 * jnp.sum((observation - x) ** 2), -jnp.inf)
        return jnp.where(observation[0] > 100, jnp.nan, value)


@pytest.mark.parametrize("model", [MODEL, SYSTEM], ids=["static", "dynamics"])
def test_a_session_is_init_and_step(model):
    """Bit for bit, with the keys that a session uses: one half for the start, the other folded with the stage."""
    session = pfbr.Session(KEY, OPERATOR, model, num_particles=32, repair=None)
    steps_key, init_key = jax.random.split(KEY)
    state = pfbr.init(init_key, OPERATOR, model, num_particles=32)
    np.testing.assert_array_equal(session.posterior.particles, OPERATOR.particles(state).points)
    for stage, observation in enumerate(STREAM):
        posterior = session.update(observation)
        state, info = compiled_step(jax.random.fold_in(steps_key, stage), OPERATOR, model, state, observation)
        np.testing.assert_array_equal(posterior.particles, state.particles.points)
        np.testing.assert_array_equal(posterior.log_density, state.particles.log_density)
        assert posterior.info["num_steps"] == info["num_steps"]
    assert session.stage == 4


@pytest.mark.parametrize("model", [MODEL, SYSTEM], ids=["static", "dynamics"])
def test_a_run_is_the_loop_over_its_stream(model):
    result = pfbr.run(KEY, OPERATOR, model, STREAM, num_particles=32)
    init_key, steps_key = jax.random.split(KEY)
    state = pfbr.init(init_key, OPERATOR, model, num_particles=32)
    for stage, step_key in enumerate(jax.random.split(steps_key, 4)):
        state, _ = compiled_step(step_key, OPERATOR, model, state, jnp.asarray(STREAM[stage]))
        np.testing.assert_allclose(result.particles.points[stage], state.particles.points, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(result.particles.log_density[stage], state.particles.log_density, atol=1e-4)


def test_a_session_and_a_run_agree_with_the_formula():
    truth = kalman(MODEL, jnp.asarray(STREAM))
    session = pfbr.Session(KEY, OPERATOR, MODEL, num_particles=32)
    for observation in STREAM:
        posterior = session.update(observation)
    result = pfbr.run(KEY, OPERATOR, MODEL, STREAM, num_particles=32)
    for mean, cov in (
        (posterior.mean(), posterior.cov()),
        (np.mean(result.particles.points[-1], axis=0), np.cov(result.particles.points[-1].T)),
    ):
        np.testing.assert_allclose(mean, truth.mean[-1], atol=0.01)
        np.testing.assert_allclose(cov, truth.cov[-1], atol=0.01)


def test_many_streams_are_single_streams():
    streams = np.stack([STREAM, STREAM[::-1] + 1.0])
    together = pfbr.run(KEY, OPERATOR, SYSTEM, streams, num_particles=32)
    assert together.particles.points.shape == (2, 4, 32, 2)
    for index, key in enumerate(jax.random.split(KEY, 2)):
        single = pfbr.run(key, OPERATOR, SYSTEM, streams[index], num_particles=32)
        np.testing.assert_allclose(together.particles.points[index], single.particles.points, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(together.particles.log_density[index], single.particles.log_density, atol=1e-3)


def test_summaries_are_numpys():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(50, 3)), rng.dirichlet(np.ones(50))
    weighted = Posterior(Particles(jnp.asarray(points), jnp.asarray(np.log(weights))), {})
    np.testing.assert_allclose(weighted.weights, weights, rtol=1e-5)
    np.testing.assert_allclose(weighted.mean(), np.average(points, axis=0, weights=weights), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.cov(), np.cov(points.T, aweights=weights), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.expectation(lambda x: x @ x), weights @ np.sum(points**2, 1), rtol=1e-5)
    equal = Posterior(Particles(jnp.asarray(points), normalise(jnp.zeros(50))), {})
    np.testing.assert_allclose(equal.cov(), np.cov(points.T), rtol=1e-4, atol=1e-6)
    q = np.array([[0.05, 0.5], [0.31, 0.95]])
    got = equal.quantile(q)
    assert got.shape == (2, 2, 3)
    np.testing.assert_allclose(got, np.quantile(points, q, axis=0, method="hazen"), atol=1e-5)
    for wrong in (-0.1, 1.1):
        with pytest.raises(InputError, match="between 0 and 1"):
            equal.quantile(wrong)


def test_weighted_quantiles_are_those_of_the_weighted_law():
    """Points spread evenly, weighted by a normal density: quantiles of that normal, to the spacing of the points."""
    grid = np.linspace(-5, 5, 401)[:, None]
    posterior = Posterior(Particles(jnp.asarray(grid), normalise(jnp.asarray(-0.5 * grid[:, 0] ** 2))), {})
    q = np.array([0.025, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(posterior.quantile(q)[:, 0], scipy.stats.norm.ppf(q), atol=0.01)


def test_a_posterior_stays_when_the_session_goes_on():
    session = pfbr.Session(KEY, OPERATOR, MODEL, num_particles=32)
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
    "nan": ([1.0, np.nan], r"nan at index \(1,\)"),
    "infinity": ([np.inf, 0.0], r"inf at index \(0,\)"),
    "a string": ("one, two", "array of numbers"),
    "a ragged list": ([[1.0], [1.0, 2.0]], "array of numbers"),
    "nothing": (None, "nan"),
    "a dictionary": ({"o": 1.0}, "array of numbers"),
    "empty": ([], r"shape \(2,\)"),
}


@pytest.mark.parametrize("name", WRONG_OBSERVATIONS)
def test_a_refused_observation_changes_nothing(name):
    wrong, message = WRONG_OBSERVATIONS[name]
    session, untouched = (pfbr.Session(KEY, OPERATOR, MODEL, num_particles=32) for _ in range(2))
    session.update(STREAM[0])
    untouched.update(STREAM[0])
    with pytest.raises(InputError, match=message):
        session.update(wrong)
    assert session.stage == 1
    np.testing.assert_array_equal(session.update(STREAM[1]).particles, untouched.update(STREAM[1]).particles)


def test_a_number_too_large_for_the_precision_in_use_is_refused():
    with pytest.raises(InputError, match="inf"):
        pfbr.Session(KEY, OPERATOR, MODEL, num_particles=32).update([1e60, 0.0])


@pytest.mark.parametrize("number", [1, 2])
def test_an_array_that_is_not_one_key_is_refused(number):
    wrong = jnp.zeros(3) if number == 1 else jax.random.split(KEY)
    with pytest.raises(InputError, match="key"):
        pfbr.Session(wrong, OPERATOR, MODEL)


@pytest.mark.parametrize("value", [50.0, 200.0], ids=["impossible everywhere", "nan"])
def test_an_observation_without_posterior_is_refused_and_changes_nothing(value):
    session = pfbr.Session(KEY, OPERATOR, Ruled(2), num_particles=64)
    posterior = session.update([0.3, 0.2])  # impossible at some particles only: fine
    assert 0 < posterior.info["alive"] < 1
    assert np.all(np.isfinite(posterior.particles))
    assert np.all(np.isfinite(posterior.log_density))
    before = session.posterior.particles.copy()
    with pytest.raises(LikelihoodError, match="observation 2"):
        session.update([value, 0.0])
    np.testing.assert_array_equal(session.posterior.particles, before)
    assert session.stage == 1
    assert np.all(np.isfinite(session.update([0.2, 0.3]).particles))


def test_a_run_names_the_observation_without_posterior():
    good, bad = [0.1, 0.1], [50.0, 0.0]
    with pytest.raises(LikelihoodError, match="observation 2 "):
        pfbr.run(KEY, OPERATOR, Ruled(2), [good, bad, good], num_particles=64)
    with pytest.raises(LikelihoodError, match="observation 3 of stream 2"):
        pfbr.run(KEY, OPERATOR, Ruled(2), [[good] * 3, [good, good, bad]], num_particles=64)


WRONG_STARTS = {
    "a number for a key": (lambda: pfbr.Session(0, OPERATOR, MODEL), InputError, r"jax\.random\.key\(0\)"),
    "a string for a key": (lambda: pfbr.Session("0", OPERATOR, MODEL), InputError, "key"),
    "a class for a model": (lambda: pfbr.Session(KEY, OPERATOR, GaussianMean), ModelError, "instance"),
    "a string for a model": (lambda: pfbr.Session(KEY, OPERATOR, "mixture"), ModelError, r"pfbr\.Model"),
    "no operator": (lambda: pfbr.Session(KEY, "paper", MODEL), InputError, "operator"),
    "no particles": (lambda: pfbr.Session(KEY, OPERATOR, MODEL, num_particles=0), InputError, "at least 2"),
    "one particle": (lambda: pfbr.init(KEY, OPERATOR, MODEL, num_particles=1), InputError, "at least 2"),
    "half a particle": (lambda: pfbr.init(KEY, OPERATOR, MODEL, num_particles=2.5), InputError, "whole number"),
    "true particles": (lambda: pfbr.run(KEY, OPERATOR, MODEL, STREAM, num_particles=True), InputError, "whole number"),
    "an empty stream": (lambda: pfbr.run(KEY, OPERATOR, MODEL, np.zeros((0, 2))), InputError, "empty"),
    "a stream of another shape": (lambda: pfbr.run(KEY, OPERATOR, MODEL, np.zeros((4, 3))), InputError, r"\(T, 2\)"),
    "one observation as a stream": (lambda: pfbr.run(KEY, OPERATOR, MODEL, np.zeros(2)), InputError, r"\(T, 2\)"),
    "a stream with a hole": (lambda: pfbr.run(KEY, OPERATOR, MODEL, [[0, 0], [0, np.nan]]), InputError, r"\(1, 1\)"),
    "a number for a run's key": (lambda: pfbr.run(7, OPERATOR, MODEL, STREAM), InputError, r"jax\.random\.key\(7\)"),
}


@pytest.mark.parametrize("name", WRONG_STARTS)
def test_what_cannot_be_used_is_refused(name):
    start, kind, message = WRONG_STARTS[name]
    with pytest.raises(kind, match=message) as caught:
        start()
    assert isinstance(caught.value, PfbrError)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) for n in ("residual", "paper")])
def test_an_operator_serves_the_models_it_was_made_for_with_any_number_of_particles(name):
    operator = operator_of(0, name, MODEL, width=6, scale=0.3)
    for n in (33,) if name == "residual" else (2, 33):
        posterior = pfbr.Session(KEY, operator, MODEL, num_particles=n, repair=None).update(STREAM[0])
        assert posterior.particles.shape == (n, 2)
        assert np.all(np.isfinite(posterior.log_density))
    with pytest.raises(InputError, match="dim 2"):
        pfbr.Session(KEY, operator, GaussianMean(3))
    if name == "paper":  # it reads the observation itself
        with pytest.raises(InputError, match=r"\(2,\)"):
            pfbr.Session(KEY, operator, GaussianMixture())
    else:
        pfbr.Session(KEY, operator, LogisticRegression(2), num_particles=16)  # any model of its dimension


@pytest.mark.parametrize("name", [pytest.param("residual", marks=pytest.mark.slow), "paper"])
def test_sixteen_digits_if_the_user_wants_them(name, x64):
    """A user may have switched JAX to 64 bits."""
    operator = operator_of(0, name, MODEL, scale=0.3, width=6)
    posterior = pfbr.Session(KEY, operator, MODEL, num_particles=16).update(STREAM[0])
    assert posterior.particles.dtype == np.float64
    assert np.all(np.isfinite(posterior.particles))


def test_a_single_value_may_come_as_a_number():
    session = pfbr.Session(KEY, OPERATOR, GaussianMixture(), num_particles=16)
    plain = session.update(0.5).particles
    again = pfbr.Session(KEY, OPERATOR, GaussianMixture(), num_particles=16).update([0.5]).particles
    np.testing.assert_array_equal(plain, again)
    column = pfbr.run(KEY, OPERATOR, GaussianMixture(), [[0.5], [0.1]], num_particles=16)
    row = pfbr.run(KEY, OPERATOR, GaussianMixture(), [0.5, 0.1], num_particles=16)
    assert eqx.tree_equal(column, row)
