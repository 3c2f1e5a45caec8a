"""The exact posterior is that of the joint Gaussian, under any conditions, and the grid agrees with it."""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.inference.method import Stream
from pfbr.metrics.truth import GaussianTruth, exact, grid, is_linear_gaussian, kalman
from pfbr.models import (
    GaussianMean,
    GaussianMixture,
    LinearDynamics,
    LinearGaussian,
    LogisticRegression,
    MiniBatch,
)
from pfbr.models.simulate import simulate

LENGTH = 6
drawn_from = jax.jit(lambda truth, key, num: truth.sample(key, num), static_argnums=2)


class Step(NamedTuple):
    """x ← A x + a + N(0, Q), then o = B x + b + N(0, R), of which `seen` was observed."""

    A: np.ndarray
    a: np.ndarray
    Q: np.ndarray
    B: np.ndarray
    b: np.ndarray
    R: np.ndarray
    seen: np.ndarray


def conditioned(mean, cov, steps, observations):
    """The posterior of x_m given o_1 … o_m for every m, from the one joint Gaussian of all x and all o, in float64."""
    d, total = len(mean), len(steps)
    # x_0 and the noises are independent; every x and every o is an affine map of them
    sources = [cov, *(s.Q for s in steps), *(s.R for s in steps)]
    source_cov = scipy.linalg.block_diag(*sources)
    starts = np.cumsum([0] + [len(source) for source in sources])
    x_map = np.zeros((d, len(source_cov)))
    x_map[:, :d] = np.eye(d)
    x_mean, rows, centres, values = mean, [], [], []
    means, covs, evidences = [], [], []
    for m, (step, observation) in enumerate(zip(steps, observations, strict=True)):
        x_map, x_mean = step.A @ x_map, step.A @ x_mean + step.a
        x_map[:, starts[1 + m] : starts[2 + m]] += np.eye(d)
        o_map = step.B @ x_map
        o_map[:, starts[1 + total + m] : starts[2 + total + m]] += np.eye(len(step.R))
        rows.append(o_map[step.seen])
        centres.append((step.B @ x_mean + step.b)[step.seen])
        values.append(np.ravel(observation)[step.seen])
        G, c, seen = np.concatenate(rows), np.concatenate(centres), np.concatenate(values)
        S = G @ source_cov @ G.T
        cross = x_map @ source_cov @ G.T
        means.append(x_mean + cross @ np.linalg.solve(S, seen - c))
        covs.append(x_map @ source_cov @ x_map.T - cross @ np.linalg.solve(S, cross.T))
        evidences.append(scipy.stats.multivariate_normal.logpdf(seen, c, S) if len(seen) else 0.0)
    return np.stack(means), np.stack(covs), np.array(evidences)


def agree(model, stream, steps, mean, cov):
    got = jax.jit(lambda s: kalman(model, s))(stream)
    observations = stream.observations if isinstance(stream, Stream) else stream
    means, covs, evidences = conditioned(mean, cov, steps, np.asarray(observations))
    np.testing.assert_allclose(got.mean, means, atol=1e-9)
    np.testing.assert_allclose(got.cov, covs, atol=1e-9)
    np.testing.assert_allclose(got.log_evidence, evidences, atol=1e-9)
    return got


def plain_steps(system, moves):
    """Every step alike; where nothing `moves`, the unknown stays."""
    A, Q, B, R = (np.asarray(m) for m in system[:4])
    d, seen = len(A), np.ones(len(R), bool)
    none = np.zeros(d), np.zeros(len(R))
    return [
        Step(A if move else np.eye(d), none[0], Q if move else 0 * Q, B, none[1], R, seen) for move in np.asarray(moves)
    ]


def system_of_three(rng):
    return LinearDynamics(
        0.6 * rng.normal(size=(3, 3)), rng.normal(size=(2, 3)), transition_std=0.7, observation_std=0.4, prior_std=1.5
    )


@pytest.mark.parametrize("name", ["dynamics", "static", "with reports at the same instant"])
def test_kalman_conditions_the_joint_gaussian(name, x64):
    """dt = 0 is another report at the same instant, whatever the model's matrices say."""
    model = GaussianMean(2, prior_std=1.5, observation_std=0.8) if name == "static" else None
    model = model or system_of_three(np.random.default_rng(1))
    observations = simulate(jax.random.key(0), model, LENGTH).observations
    system, stream, moves = model.linear_gaussian(), observations, np.ones(LENGTH)
    if name == "with reports at the same instant":
        moves = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
        stream = Stream(observations, jnp.asarray(moves))
    agree(model, stream, plain_steps(system, moves), np.asarray(system.mean), np.asarray(system.cov))


F = np.array([[0.0, 1.0], [-0.5, -0.3]])
B = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
NOISE = np.array([[1.0, 0.6, -0.2], [0.6, 0.8, 0.1], [-0.2, 0.1, 0.5]])  # correlated
SPREAD = np.array([[0.3, 0.1], [0.1, 0.2]])


class Pushed(pfbr.StateSpaceModel):
    """x ← (I + dt F) x + dt push + N(0, dt SPREAD), seen by three sensors with an offset and correlated noise."""

    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.5 * x @ x - jnp.log(2 * jnp.pi)

    def sample_transition(self, key, x, *, dt, inputs):
        noise = jnp.linalg.cholesky(dt * SPREAD + 1e-12 * jnp.eye(2)) @ jax.random.normal(key, (2,))
        return x + dt * (F @ x + inputs["push"]) + noise

    def log_likelihood(self, x, observation, *, inputs, observed):
        raise NotImplementedError  # Kalman's filter needs the matrices alone

    def linear_gaussian(self, *, dt, inputs):
        return LinearGaussian(
            A=jnp.eye(2) + dt * F,
            Q=dt * jnp.asarray(SPREAD),
            B=jnp.asarray(B),
            R=jnp.asarray(NOISE),
            mean=jnp.array([0.5, -1.0]),
            cov=jnp.asarray([[2.0, 0.3], [0.3, 1.0]]),
            a=dt * inputs["push"],
            b=inputs["offset"],
        )


def test_kalman_with_irregular_times_controls_and_gaps(x64):
    """Elapsed times (one of them zero), offsets in both equations, and components missing here and there, once all."""
    rng = np.random.default_rng(2)
    dt = np.array([0.5, 2.0, 0.0, 0.1, 1.3, 0.7])
    inputs = {"push": rng.normal(size=(LENGTH, 2)), "offset": rng.normal(size=(LENGTH, 3))}
    observations = 2 * rng.normal(size=(LENGTH, 3))
    seen = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]], bool)
    steps = [
        Step(np.eye(2) + dt[m] * F, dt[m] * inputs["push"][m], dt[m] * SPREAD, B, inputs["offset"][m], NOISE, seen[m])
        for m in range(LENGTH)
    ]
    stream = Stream(
        jnp.asarray(np.where(seen, observations, 0.0)),
        jnp.asarray(dt),
        jax.tree.map(jnp.asarray, inputs),
        jnp.asarray(seen),
    )
    got = agree(Pushed(), stream, steps, np.array([0.5, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]))
    assert got.log_evidence[3] == got.log_evidence[2]  # nothing was seen: to the last bit
    assert is_linear_gaussian(Pushed())


def test_the_mean_of_a_gaussian_has_a_closed_form(x64):
    """Precisions add: 1/v_m = 1/p² + m/s², and the mean is v_m Σ o / s²."""
    model = GaussianMean(2, prior_std=2.0, observation_std=0.5)
    observations = simulate(jax.random.key(3), model, 20).observations
    m = np.arange(1, 21)
    variance = 1 / (1 / 4 + m / 0.25)
    got = jax.jit(lambda o: kalman(model, o))(observations)
    np.testing.assert_allclose(got.mean, variance[:, None] * np.cumsum(observations, 0) / 0.25, rtol=1e-9)
    np.testing.assert_allclose(got.cov, variance[:, None, None] * np.eye(2), rtol=1e-9, atol=1e-15)


def test_draws_of_a_gaussian_have_its_moments():
    last = GaussianTruth(jnp.array([0.5, -1.0]), jnp.array([[2.0, 0.6], [0.6, 0.5]]), jnp.zeros(()))
    draws = drawn_from(last, jax.random.key(0), 20_000)
    np.testing.assert_allclose(np.mean(draws, 0), last.mean, atol=6 * np.sqrt(2 / 20_000))
    np.testing.assert_allclose(np.cov(draws.T), last.cov, atol=6 * 2 * np.sqrt(2 / 20_000))
    expected = scipy.stats.multivariate_normal.logpdf(draws[:50], last.mean, last.cov)
    np.testing.assert_allclose(jax.jit(GaussianTruth.log_density)(last, draws[:50]), expected, rtol=1e-4, atol=1e-4)


def kalman_of(model, observations):
    return jax.jit(lambda o: kalman(model, o))(observations)


def grid_of(model, observations, **settings):
    return jax.jit(lambda o: grid(model, o, cells=128, **settings))(observations)


@pytest.fixture(scope="module")
def grids():
    """The grid and the formula on a vague stream of 4, and on a sharp one of 100 seen at its end."""
    pairs = {}
    for name, std, length in (("vague", 3.0, 4), ("sharp", 0.1, 100)):
        model = GaussianMean(2, observation_std=std)
        observations = simulate(jax.random.key(2), model, length).observations
        if length == 100:  # as a batch of 100: the same posterior, one stage
            pairs[name] = _last_stage(model, observations)
        else:
            pairs[name] = grid_of(model, observations), kalman_of(model, observations)
    return pairs


def _last_stage(model, observations):
    at_once = grid_of(MiniBatch(model, 100), observations[None], refinements=4)
    return at_once, jax.tree.map(lambda a: a[-1:], kalman_of(model, observations))


@pytest.mark.parametrize("name", ["vague", "sharp"])
def test_the_grid_is_the_formula(name, grids):
    """The mean to a hundredth of a standard deviation, the evidence to 0.01, the density to half a cell's slope."""
    found, formula = grids[name]
    std = np.sqrt(np.asarray(formula.cov)[:, 0, 0])

    @jax.jit
    @jax.vmap
    def compared(found, formula, key):
        draws = formula.sample(key, 2000)
        return found.mean, found.log_density(draws) - formula.log_density(draws)

    means, difference = compared(found, formula, jax.random.split(jax.random.key(0), len(std)))
    assert np.all(np.abs(means - formula.mean) < 0.01 * std[:, None])
    np.testing.assert_allclose(found.log_evidence, formula.log_evidence, atol=0.01, rtol=2e-5)
    assert np.abs(difference).max() < 0.5
    assert np.abs(np.mean(difference, axis=1)).max() < 0.01


@pytest.mark.parametrize("name", ["vague", "sharp"])
def test_draws_of_the_grid_have_its_moments(name, grids):
    """20,000 draws, z = 6; the spread inside a cell counts too, so draws are compared with the formula."""
    found, formula = (jax.tree.map(lambda a: a[-1], t) for t in grids[name])
    draws = drawn_from(found, jax.random.key(5), 20_000)
    scale = float(np.sqrt(formula.cov[0, 0]))
    np.testing.assert_allclose((np.mean(draws, 0) - formula.mean) / scale, 0, atol=6 / np.sqrt(20_000) + 0.01)
    np.testing.assert_allclose(np.cov(draws.T) / scale**2, np.eye(2), atol=6 * np.sqrt(2 / 20_000) + 0.01)


def test_the_grid_holds_both_modes_of_a_mixture():
    """Data from (1, −2) cannot be told from (−1, 2): by symmetry each half of the plane gets half of the mass."""
    model = GaussianMixture()
    observations = simulate(jax.random.key(0), model, 12, at=jnp.array([1.0, -2.0])).observations
    truth = jax.tree.map(lambda a: a[0], grid_of(MiniBatch(model, 12), observations[None]))
    draws = np.asarray(drawn_from(truth, jax.random.key(1), 4000))
    swapped = np.stack([draws.sum(1), -draws[:, 1]], 1)
    # likelihoods are equal under the swap, priors (standard normals) are not: their ratio says how much mass each has
    ratio = np.exp(0.5 * np.sum(draws**2 - swapped**2, axis=1))
    assert abs(ratio.mean() - 1) < 0.1
    assert 0.3 < np.mean(draws[:, 1] > 0) < 0.7


def test_exact_knows_what_it_can_do():
    stream = jnp.zeros((2, 3))
    assert exact(LogisticRegression(3), Stream(jnp.zeros((2, 1)), inputs=jnp.zeros((2, 3)))) is None
    assert isinstance(exact(GaussianMean(3), stream), GaussianTruth)
    with pytest.raises(InputError, match="dim 2"):
        grid(GaussianMean(3), stream)
    with pytest.raises(InputError, match="linear"):
        kalman(GaussianMixture(), jnp.zeros((2, 1)))
    assert not is_linear_gaussian(GaussianMixture())
    assert is_linear_gaussian(MiniBatch(GaussianMean(2), 3))


def test_the_grid_takes_inputs_and_gaps():
    """A logistic stream whose last label is missing: the posterior is that of the first ones."""
    drawn = jax.jit(lambda key: simulate(key, LogisticRegression(2), 3))(jax.random.key(0))
    seen = jnp.array([[True], [True], [False]])
    stream = Stream(jnp.where(seen, drawn.observations, 0.0), inputs=drawn.inputs, observed=seen)
    truth = jax.jit(lambda s: grid(LogisticRegression(2), s, cells=64))(stream)
    np.testing.assert_allclose(truth.log_mass[2], truth.log_mass[1], atol=1e-5)
    assert float(truth.log_evidence[2]) == pytest.approx(float(truth.log_evidence[1]), abs=1e-5)
    assert float(truth.log_evidence[1]) < -0.5  # two coins' worth of surprise, more or less
