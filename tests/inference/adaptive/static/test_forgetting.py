"""Rows that leave become the quadratic that they are, or say how far they are from one."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.forgetting import forget_oldest
from pfbr.inference.adaptive.static.past import BLOCK, empty_past
from pfbr.inference.adaptive.static.surrogate import no_surrogate
from tests.inference.adaptive.static.problems import banana, linear_gaussian


def forgotten(target, rows, points):
    past = eqx.tree_at(lambda p: (p.rows, p.count), empty_past(rows[0], BLOCK), (rows, jnp.asarray(BLOCK)))
    weights = jnp.full(len(points), -jnp.log(len(points)))
    return forget_oldest(target, past, no_surrogate(2, points.dtype), points, weights)


def test_linear_gaussian_rows_are_forgotten_without_loss(x64):
    target, rows = linear_gaussian(), jax.random.normal(jax.random.key(0), (BLOCK, 3))
    points = jnp.array([3.0, -1.0]) + jax.random.normal(jax.random.key(1), (16, 2)) * jnp.array([1e-3, 10.0])
    past, quadratic = forgotten(target, rows, points)
    _, score = quadratic.value_and_score(points)
    exact = jax.vmap(jax.grad(lambda x: jnp.sum(jax.vmap(lambda r: target.log_likelihood(x, r))(rows))))(points)
    np.testing.assert_allclose(score, exact, rtol=1e-6)
    assert int(past.count) == 0
    assert int(quadratic.rows) == BLOCK
    assert float(quadratic.misfit) < 1e-12


def test_bent_rows_say_so(x64):
    rows = jax.random.normal(jax.random.key(0), (BLOCK, 1))
    _, quadratic = forgotten(banana(), rows, jax.random.normal(jax.random.key(1), (64, 2)))
    assert float(quadratic.misfit) > 1.0
