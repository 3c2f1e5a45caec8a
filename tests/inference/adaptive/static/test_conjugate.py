"""The closed form is Kalman's, to rounding; a prior or a row that is not Gaussian ends it."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.static.conjugate import MOST_MISFIT, conjugate_update, prior_as_law
from pfbr.inference.adaptive.static.target import Target
from tests.inference.adaptive.static.problems import banana, kalman, linear_gaussian

ROWS = jnp.array([[1.0, 0.5, 0.3], [-0.2, 1.0, 2.0], [0.7, -0.7, -1.0]])


def test_three_rows_are_kalmans(x64):
    target = linear_gaussian()
    state = prior_as_law(target, 2.0 * jax.random.normal(jax.random.key(0), (16, 2)))
    np.testing.assert_allclose(jnp.mean(state.points, 0), 0.0, atol=1e-6)
    evidence = 0.0
    for row, (mean, cov, log_evidence) in zip(ROWS, kalman(ROWS), strict=True):
        state = conjugate_update(target, state.points, state.law, row)
        evidence += state.log_predictive
        np.testing.assert_allclose(state.law.mean, mean, atol=1e-6)
        np.testing.assert_allclose(state.law.scale @ state.law.scale.T, cov, atol=1e-6)
        np.testing.assert_allclose(jnp.mean(state.points, 0), mean, atol=1e-6)
        np.testing.assert_allclose(jnp.cov(state.points.T, ddof=0), cov, atol=1e-6)
        np.testing.assert_allclose(evidence, log_evidence, atol=1e-6)
        assert float(state.misfit) < 1e-6


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["there", "and back"])
def test_a_row_taken_back_leaves_what_was_there(x64, sign):
    target = linear_gaussian()
    start = prior_as_law(target, 2.0 * jax.random.normal(jax.random.key(0), (16, 2)))
    first = conjugate_update(target, start.points, start.law, ROWS[0])
    inverse = Target(target.log_prior, lambda x, row: -target.log_likelihood(x, row))
    both = conjugate_update(target if sign > 0 else inverse, first.points, first.law, ROWS[0])
    if sign < 0:
        np.testing.assert_allclose(both.law.mean, start.law.mean, atol=1e-6)
        np.testing.assert_allclose(both.points, start.points, atol=1e-5)
        np.testing.assert_allclose(both.log_predictive, -first.log_predictive, atol=1e-6)
    else:
        np.testing.assert_allclose(both.law.mean, kalman([ROWS[0], ROWS[0]])[-1][0], atol=1e-6)


def test_a_bent_row_and_a_prior_with_heavy_tails_are_seen():
    points = jax.random.normal(jax.random.key(0), (64, 2))
    start = prior_as_law(banana(), points)
    assert float(start.misfit) < MOST_MISFIT
    assert float(conjugate_update(banana(), start.points, start.law, jnp.ones(1)).misfit) > MOST_MISFIT
    cauchy = Target(lambda x: -jnp.sum(jnp.log1p(x**2)), banana().log_likelihood)
    left = prior_as_law(cauchy, points)
    assert float(left.misfit) > MOST_MISFIT
    np.testing.assert_array_equal(left.points, points)


@pytest.mark.parametrize("outside", [-jnp.inf, -3.0], ids=["hard edge", "step"])
def test_steps_have_the_scores_of_a_flat_likelihood_and_are_seen(outside):
    start = prior_as_law(banana(), jax.random.normal(jax.random.key(0), (64, 2)))
    steps = Target(banana().log_prior, lambda x, row: jnp.where(x[0] > row[0], 0.0, outside))
    assert not float(conjugate_update(steps, start.points, start.law, jnp.zeros(1)).misfit) <= MOST_MISFIT


def test_an_edge_inside_the_cloud_ends_it():
    """Scores of a cut-off row are those of a flat one; its values are not, though a mean of infinities compares with
    anything."""
    target = linear_gaussian()
    edge = Target(target.log_prior, lambda x, row: jnp.where(x[0] < 1.0, 0.0, -jnp.inf))
    start = prior_as_law(target, 2.0 * jax.random.normal(jax.random.key(0), (16, 2)))
    assert float(conjugate_update(edge, start.points, start.law, ROWS[0]).misfit) > MOST_MISFIT
