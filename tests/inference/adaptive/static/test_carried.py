"""What is carried of the past is exact at the particles, exact everywhere for a normal, and honest about the rest."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.carried import (
    carried_law,
    carried_prior,
    evaluate_carried,
    fit_continuation,
    with_row,
)
from pfbr.inference.adaptive.static.conjugate import prior_as_law
from pfbr.inference.adaptive.static.target import Target
from tests.inference.adaptive.static.problems import banana, linear_gaussian

ROWS = jnp.array([[1.0, 0.5, 0.3], [-0.2, 1.0, 2.0]])
N = 128
continuation = jax.jit(fit_continuation)
log_density = jax.jit(lambda known, points: known.log_density(points))


def equal(n):
    return jnp.full(n, -jnp.log(n))


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


def test_a_normal_is_continued_exactly(x64):
    points = cloud(0)
    known = continuation(known_after(linear_gaussian(), ROWS, points), points, equal(N))
    elsewhere = 0.3 * cloud(1)
    exact = joint(linear_gaussian(), ROWS)(elsewhere)
    np.testing.assert_allclose(jnp.diff(log_density(known, elsewhere)), jnp.diff(exact), rtol=1e-6, atol=1e-6)
    assert float(known.misfit()) < 1e-12
    assert float(known.variance()) < 1e-12


def test_a_bent_density_is_continued_as_well_as_it_says():
    """Between the particles; and it says how well by leaving them out, one at a time."""
    target, rows = banana(), jnp.array([[1.0]])
    exact = joint(target, rows)
    many = jax.random.normal(jax.random.key(2), (20_000, 2))
    drawn = jax.random.choice(
        jax.random.key(3), many, (2 * N,), p=jax.nn.softmax(exact(many) - joint(target, [])(many))
    )
    points, elsewhere = drawn[:N], drawn[N:]
    known = continuation(known_after(target, rows, points), points, equal(N))
    off = log_density(known, elsewhere) - exact(elsewhere)
    typical = float(jnp.median(jnp.abs(off - jnp.median(off))))
    assert typical < 0.25
    assert typical < 2 * float(jnp.sqrt(known.misfit()))


def test_far_from_all_particles_there_is_nothing():
    points = jnp.concatenate([0.1 * cloud(0, 64) - 3.0, 0.1 * cloud(1, 64) + 3.0])
    target = Target(
        lambda x: jnp.logaddexp(*(-0.5 * jnp.sum((x - c) ** 2) / 0.04 for c in (-3.0, 3.0))), lambda x, row: 0.0
    )
    known = continuation(carried_prior(target, points), points, equal(N))
    between, within = log_density(known, jnp.array([[0.0, 0.0], [3.0, 3.0]]))
    assert between < within - 10  # e⁻¹⁰ of the density: no chain of some hundred moves fills the gap


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
    known = continuation(carried_prior(half, points), points, equal(N))
    evaluate = jax.jit(lambda first: evaluate_carried(half, known, first, points, ROWS[0]))
    first, later = evaluate(jnp.asarray(True)), evaluate(jnp.asarray(False))
    np.testing.assert_allclose(first.past, jax.vmap(half.log_prior)(points), rtol=1e-5)
    assert np.all(np.isneginf(later.past) == (points[:, 0] <= 0))
    np.testing.assert_allclose(later.new, first.new)
