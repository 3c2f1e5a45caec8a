"""A stream, row by row: exact where there is a formula, right by a grid where not; and rows taken back."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.static.past import BLOCK
from pfbr.inference.adaptive.static.state import Move, init
from pfbr.inference.adaptive.static.step import retract, step
from pfbr.inference.adaptive.static.target import Target
from pfbr.inference.adaptive.static.weighing import begin, weigh
from tests.inference.adaptive.static.problems import banana, grid_moments, kalman, linear_gaussian

N = 256
LINEAR = jnp.array([[1.0, 0.5, 0.3], [-0.2, 1.0, 2.0], [0.7, -0.7, -1.0]])
BENT = jnp.array([[1.0], [1.4], [0.2], [0.9], [1.6]])
FAR = jnp.array([[9.0], [8.6], [9.3]])  # where hardly a draw of the prior is
# with draws of the prior, so that fresh looks are taken
TARGET = Target(banana().log_prior, banana().log_likelihood, lambda key, num: jax.random.normal(key, (num, 2)))
bent_step = eqx.filter_jit(lambda key, state, row: step(key, TARGET, state, row))
bent_back = eqx.filter_jit(lambda key, state, index: retract(key, TARGET, state, index))


def stream(take, target, rows, *, key=0, scale=1.0):
    points = scale * jax.random.normal(jax.random.key(key), (N, 2))
    state, said = init(jax.random.key(key), points, rows[0], history=BLOCK), []
    for m, row in enumerate(rows):
        state, info = take(jax.random.fold_in(jax.random.key(key), m), state, row)
        said.append(info)
    return state, said


def moments(state):
    weights = np.exp(np.asarray(state.log_weights, float))
    points = np.asarray(state.points, float)
    mean = weights @ points
    return mean, (weights[:, None] * (points - mean)).T @ (points - mean)


@pytest.fixture(scope="module")
def after_five():
    """Twelve keys of the bent stream."""
    return [stream(bent_step, banana(), BENT, key=key) for key in range(12)]


def test_a_linear_gaussian_stream_is_kalmans():
    target = linear_gaussian()
    begun = eqx.filter_jit(lambda state: begin(target, state))
    weighed = eqx.filter_jit(lambda state, row: weigh(target, state, row))

    def take(_, state, row):
        state, info, enough = weighed(begun(state) if int(state.steps) == 0 else state, row)
        assert bool(enough)
        return state, info

    state, said = stream(take, target, LINEAR, scale=2.0)
    mean, cov, evidence = kalman(LINEAR)[-1]
    ours = moments(state)
    np.testing.assert_allclose(ours[0], mean, atol=1e-4)
    np.testing.assert_allclose(ours[1], cov, atol=1e-4)
    np.testing.assert_allclose(sum(info.log_predictive for info in said), evidence, atol=1e-3)
    assert all(int(info.move) == Move.CONJUGATE and not bool(info.flagged) for info in said)


def test_a_bent_stream_is_that_of_the_grid(after_five):
    mean, cov, log_integral = grid_moments(banana(), BENT)
    sd = np.sqrt(np.diag(cov))
    off = np.array([(moments(state)[0] - mean) / sd for state, _ in after_five])
    assert np.sqrt(np.mean(off**2)) < 1.6 / np.sqrt(N)  # 1.0 for exact draws
    spread = np.mean([np.sqrt(np.diag(moments(state)[1])) / sd for state, _ in after_five], axis=0)
    np.testing.assert_allclose(spread, 1.0, atol=0.07)
    evidence = [float(sum(info.log_predictive for info in said)) for _, said in after_five]
    np.testing.assert_allclose(np.mean(evidence), log_integral - np.log(2 * np.pi), atol=0.1)
    assert not any(bool(info.flagged) for _, said in after_five for info in said)


def test_evidence_in_the_tail_of_the_prior():
    """Fresh looks find too little there and are left alone; rows are tempered."""
    known = grid_moments(banana(), FAR)[2] - np.log(2 * np.pi)
    ended = [stream(bent_step, banana(), FAR, key=key)[1] for key in range(8)]
    evidence = [float(sum(info.log_predictive for info in said)) for said in ended]
    assert np.std(evidence) < 0.5
    np.testing.assert_allclose(np.mean(evidence), known, atol=0.5)


@pytest.mark.slow
def test_a_mode_that_the_prior_hardly_holds_is_found_by_fresh_draws():
    """A thousandth of the prior, and the row is there: 256 draws have none in it, sixteen times as many have four."""
    near = lambda x: -0.5 * jnp.sum(x**2) + jnp.log(0.999)
    far = lambda x: -0.5 * jnp.sum((x - 8.0) ** 2) + jnp.log(0.001)

    def draw(key, num):
        normal, which = jax.random.split(key)
        away = jax.random.uniform(which, (num, 1)) < 1e-3
        return jax.random.normal(normal, (num, 2)) + jnp.where(away, 8.0, 0.0)

    target = Target(lambda x: jnp.logaddexp(near(x), far(x)), lambda x, row: -0.5 * jnp.sum((row - x) ** 2), draw)
    take = eqx.filter_jit(lambda key, state, row: step(key, target, state, row))
    state, said = stream(take, target, jnp.array([[7.5, 8.5]]))
    np.testing.assert_allclose(moments(state)[0], [7.75, 8.25], atol=0.2)
    np.testing.assert_allclose(said[0].log_predictive, np.log(0.001 / 2) - 0.125, atol=1.5)  # four draws: roughly


def test_a_row_taken_back_leaves_the_posterior_without_it(after_five):
    """Every third row of five taken back, against the grid that never saw it; and the evidence with it."""
    left = jnp.delete(BENT, 2, axis=0)
    mean, cov, log_integral = grid_moments(banana(), left)
    sd, off, evidence = np.sqrt(np.diag(cov)), [], []
    for key, (state, said) in enumerate(after_five):
        state, info = bent_back(jax.random.key(100 + key), state, jnp.asarray(2))
        off.append((moments(state)[0] - mean) / sd)
        evidence.append(float(sum(i.log_predictive for i in said) + info.log_predictive))
        assert int(state.past.count) == 4
        assert int(state.steps) == 4
        np.testing.assert_array_equal(state.past.rows[:4], left)
    assert np.sqrt(np.mean(np.square(off))) < 2.0 / np.sqrt(N)
    np.testing.assert_allclose(np.mean(evidence), log_integral - np.log(2 * np.pi), atol=0.15)


def test_a_row_that_is_impossible_everywhere_keeps_the_cloud_and_is_flagged(after_five):
    state, _ = after_five[0]
    kept, said = bent_step(jax.random.key(9), state, jnp.array([1e3]))
    assert bool(said.flagged)
    assert np.isneginf(said.log_predictive)
    assert int(said.stages) == 1
    assert np.all(np.isfinite(kept.points))
