"""A quadratic in any units is the same quadratic, with the score that autodiff gives."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.surrogate import no_surrogate


def quadratic():
    empty = no_surrogate(2, jnp.zeros(()).dtype).recentred(jnp.array([1.0, -2.0]), jnp.array([0.5, 3.0]))
    return empty.add(jnp.array([0.7, -0.1]), jnp.array([[2.0, 0.3], [0.3, 1.0]]), 128, jnp.asarray(0.01))


def test_nothing_is_zero_everywhere(x64):
    value, score = no_surrogate(2, jnp.zeros(()).dtype).value_and_score(jnp.ones((3, 2)))
    assert np.all(value == 0)
    assert np.all(score == 0)


def test_the_score_is_the_gradient(x64):
    points = jax.random.normal(jax.random.key(0), (4, 2))
    _value, score = quadratic().value_and_score(points)
    gradient = jax.vmap(jax.grad(lambda x: quadratic().value_and_score(x[None])[0][0]))(points)
    np.testing.assert_allclose(score, gradient, rtol=1e-10)
    assert int(quadratic().rows) == 128


def test_another_centre_and_other_units_change_a_constant_only(x64):
    points = jax.random.normal(jax.random.key(0), (4, 2))
    moved = quadratic().recentred(jnp.array([-3.0, 5.0]), jnp.array([7.0, 0.2]))
    before, after = quadratic().value_and_score(points), moved.value_and_score(points)
    np.testing.assert_allclose(after[1], before[1], rtol=1e-9)
    np.testing.assert_allclose(jnp.diff(after[0]), jnp.diff(before[0]), rtol=1e-9)
