"""What is carried of the past is exact at the particles, and the prior and its support stand everywhere."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.carried import (
    carried_law,
    carried_prior,
    evaluate_carried,
    with_row,
)
from pfbr.inference.adaptive.static.conjugate import prior_as_law
from pfbr.inference.adaptive.static.target import Target
from tests.inference.adaptive.static.problems import linear_gaussian

ROWS = jnp.array([[1.0, 0.5, 0.3], [-0.2, 1.0, 2.0]])
N = 128


def cloud(key, n=N):
    return 2.0 * jax.random.normal(jax.random.key(key), (n, 2))


def joint(target, rows):
    return jax.vmap(lambda x: target.log_prior(x) + sum(target.log_likelihood(x, row) for row in rows))


def known_after(target, rows, points):
    carried = carried_prior(target, points)
    for row in rows:
        carried = with_row(carried, target, points, row)
    return carried


def test_rows_add_up_at_the_particles():
    points = cloud(0)
    carried = known_after(linear_gaussian(), ROWS, points)
    exact = joint(linear_gaussian(), ROWS)
    np.testing.assert_allclose(jnp.diff(carried.values), jnp.diff(exact(points)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(carried.scores, jax.grad(lambda x: jnp.sum(exact(x)))(points), rtol=1e-4, atol=1e-4)
    assert float(jnp.max(carried.values)) == 0.0


def test_a_law_is_carried_in_closed_form(x64):
    target = linear_gaussian()
    prior = prior_as_law(target, cloud(0, 16))
    carried = carried_law(prior.law, prior.points)
    values, scores = jax.vmap(jax.value_and_grad(target.log_prior))(prior.points)
    np.testing.assert_allclose(jnp.diff(carried.values), jnp.diff(values), atol=1e-6)
    np.testing.assert_allclose(carried.scores, scores, atol=1e-6)


def test_before_the_first_row_the_prior_stands_and_its_support_always():
    target, points = linear_gaussian(), cloud(2)
    half = Target(lambda x: jnp.where(x[0] > 0, target.log_prior(x), -jnp.inf), target.log_likelihood)
    known = carried_prior(half, points).continuation(half, points, jnp.full(N, -jnp.log(N)))
    evaluate = jax.jit(lambda first: evaluate_carried(half, known, first, points, ROWS[0]))
    first, later = evaluate(jnp.asarray(True)), evaluate(jnp.asarray(False))
    np.testing.assert_allclose(first.past, jax.vmap(half.log_prior)(points), rtol=1e-5)
    assert np.all(np.isneginf(later.past) == (points[:, 0] <= 0))
    np.testing.assert_allclose(later.new, first.new)
