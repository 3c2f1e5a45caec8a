"""The exact posterior is that of the joint Gaussian, and the grid agrees with it."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.metrics.truth import exact, grid, kalman
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression, MiniBatch
from pfbr.models.simulate import simulate

LENGTH = 6


def conditioned(system, observations):
    """The posterior of x_m given o_1 … o_m for every m, from the one joint Gaussian of all x and all o."""
    A, Q, B, R, mean, cov = (np.asarray(m) for m in system)
    d, k = A.shape[0], B.shape[0]
    total = len(observations)
    # x_0 and the noises are independent; every x and every o is a linear map of them
    sources = [cov] + [Q] * total + [R] * total
    source_cov = scipy.linalg.block_diag(*sources)
    starts = np.cumsum([0] + [s.shape[0] for s in sources])
    x_map = np.zeros((d, len(source_cov)))
    x_map[:, :d] = np.eye(d)
    means, covs, evidences, rows, centres = [], [], [], [], []
    x_mean = mean
    for m in range(total):
        x_map, x_mean = A @ x_map, A @ x_mean
        x_map[:, starts[1 + m] : starts[2 + m]] += np.eye(d)
        o_map = B @ x_map
        o_map[:, starts[1 + total + m] : starts[2 + total + m]] += np.eye(k)
        rows.append(o_map)
        centres.append(B @ x_mean)
        G, c = np.concatenate(rows), np.concatenate(centres)
        S = G @ source_cov @ G.T
        cross = x_map @ source_cov @ G.T
        seen = np.concatenate([np.ravel(o) for o in observations[: m + 1]])
        means.append(x_mean + cross @ np.linalg.solve(S, seen - c))
        covs.append(x_map @ source_cov @ x_map.T - cross @ np.linalg.solve(S, cross.T))
        evidences.append(scipy.stats.multivariate_normal.logpdf(seen, c, S))
    return np.stack(means), np.stack(covs), np.array(evidences)


@pytest.mark.parametrize("name", ["dynamics", "static"])
def test_kalman_conditions_the_joint_gaussian(name, x64):
    rng = np.random.default_rng(1)
    if name == "dynamics":
        model = LinearDynamics(
            0.6 * rng.normal(size=(3, 3)),
            rng.normal(size=(2, 3)),
            transition_std=0.7,
            observation_std=0.4,
            prior_std=1.5,
        )
    else:
        model = GaussianMean(2, prior_std=1.5, observation_std=0.8)
    observations = simulate(jax.random.key(0), model, LENGTH).observations
    got = kalman(model, observations)
    means, covs, evidences = conditioned(model.linear_gaussian(), np.asarray(observations))
    np.testing.assert_allclose(got.mean, means, atol=1e-9)
    np.testing.assert_allclose(got.cov, covs, atol=1e-9)
    np.testing.assert_allclose(got.log_evidence, evidences, atol=1e-9)


def test_the_mean_of_a_gaussian_has_a_closed_form(x64):
    """Precisions add: 1/v_m = 1/p² + m/s², and the mean is v_m Σ o / s²."""
    model = GaussianMean(2, prior_std=2.0, observation_std=0.5)
    observations = simulate(jax.random.key(3), model, 20).observations
    m = np.arange(1, 21)
    variance = 1 / (1 / 4 + m / 0.25)
    got = kalman(model, observations)
    np.testing.assert_allclose(got.mean, variance[:, None] * np.cumsum(observations, 0) / 0.25, rtol=1e-9)
    np.testing.assert_allclose(got.cov, variance[:, None, None] * np.eye(2), rtol=1e-9, atol=1e-15)


def test_draws_of_a_gaussian_have_its_moments():
    truth = kalman(GaussianMean(2), simulate(jax.random.key(3), GaussianMean(2), 3).observations)
    last = jax.tree.map(lambda a: a[-1], truth)
    draws = last.sample(jax.random.key(0), 20_000)
    np.testing.assert_allclose(jnp.mean(draws, 0), last.mean, atol=6 / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(draws.T), last.cov, atol=6 * np.sqrt(2 / 20_000))
    expected = scipy.stats.multivariate_normal.logpdf(draws[:50], last.mean, last.cov)
    np.testing.assert_allclose(last.log_density(draws[:50]), expected, rtol=1e-4, atol=1e-4)


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
            pairs[name] = grid(model, observations, cells=128), kalman(model, observations)
    return pairs


def _last_stage(model, observations):
    at_once = grid(MiniBatch(model, 100), observations[None], cells=128, refinements=4)
    return at_once, jax.tree.map(lambda a: a[-1:], kalman(model, observations))


@pytest.mark.parametrize("name", ["vague", "sharp"])
def test_the_grid_is_the_formula(name, grids):
    """The mean to a hundredth of a standard deviation, the evidence to 0.01, the density to half a cell's slope."""
    found, formula = grids[name]
    std = np.sqrt(np.asarray(formula.cov)[:, 0, 0])
    assert np.all(np.abs(jax.vmap(lambda t: t.mean)(found) - formula.mean) < 0.01 * std[:, None])
    np.testing.assert_allclose(found.log_evidence, formula.log_evidence, atol=0.01, rtol=2e-5)
    keys = jax.random.split(jax.random.key(0), len(std))
    draws = jax.vmap(lambda t, k: t.sample(k, 2000))(formula, keys)
    difference = jax.vmap(lambda a, b, x: a.log_density(x) - b.log_density(x))(found, formula, draws)
    assert np.abs(difference).max() < 0.5
    assert np.abs(np.mean(difference, axis=1)).max() < 0.01


@pytest.mark.parametrize("name", ["vague", "sharp"])
def test_draws_of_the_grid_have_its_moments(name, grids):
    """20,000 draws, z = 6; the spread inside a cell counts too, so draws are compared with the formula."""
    found, formula = (jax.tree.map(lambda a: a[-1], t) for t in grids[name])
    draws = found.sample(jax.random.key(5), 20_000)
    scale = float(jnp.sqrt(formula.cov[0, 0]))
    np.testing.assert_allclose((jnp.mean(draws, 0) - formula.mean) / scale, 0, atol=6 / np.sqrt(20_000) + 0.01)
    np.testing.assert_allclose(np.cov(draws.T) / scale**2, np.eye(2), atol=6 * np.sqrt(2 / 20_000) + 0.01)


def test_the_grid_holds_both_modes_of_a_mixture():
    """Data from (1, −2) cannot be told from (−1, 2): by symmetry each half of the plane gets half of the mass."""
    model = GaussianMixture()
    observations = simulate(jax.random.key(0), model, 12, at=jnp.array([1.0, -2.0])).observations
    truth = jax.tree.map(lambda a: a[0], grid(MiniBatch(model, 12), observations[None], cells=128))
    draws = truth.sample(jax.random.key(1), 4000)
    swapped = jnp.stack([draws.sum(1), -draws[:, 1]], 1)
    # likelihoods are equal under the swap, priors are not: their ratio says how much mass each mode has
    ratio = jnp.exp(jax.vmap(model.log_prior)(swapped) - jax.vmap(model.log_prior)(draws))
    assert abs(float(jnp.mean(ratio)) - 1) < 0.1
    assert 0.3 < float(jnp.mean(draws[:, 1] > 0)) < 0.7


def test_exact_knows_what_it_can_do():
    stream = jnp.zeros((2, 3))
    assert exact(LogisticRegression(3), jnp.zeros((2, 4))) is None
    assert eqx.tree_equal(exact(GaussianMean(3), stream), kalman(GaussianMean(3), stream))
    with pytest.raises(InputError, match="dim 2"):
        grid(GaussianMean(3), stream)
    with pytest.raises(InputError, match="linear"):
        kalman(GaussianMixture(), jnp.zeros((2, 1)))
