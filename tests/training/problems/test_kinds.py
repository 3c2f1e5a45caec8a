"""Random likelihoods of every kind are finite with their gradients, in any dimension, and zero where they are off."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from benchmarks.learned import development, testing
from pfbr.training.problems import kinds
from pfbr.training.problems.term import draw_term, log_likelihood

ALL = (*kinds.KINDS, *development.KINDS, *testing.KINDS)


@pytest.fixture(scope="module")
def told():
    """Values and gradients of every kind at 16 problems, far points among them, with one and with four unknowns."""

    def of(d):
        def one(number):
            def at(key):
                term_key, point_key = jax.random.split(key)
                term = draw_term(term_key, number[None], jnp.ones(d), jnp.ones(()))
                x = 3 * jax.random.normal(point_key, (d,))
                terms = jax.tree.map(lambda leaf: leaf[None], term)
                return jax.value_and_grad(lambda x: log_likelihood(ALL, terms, x))(x)

            return jax.lax.map(at, jax.random.split(jax.random.key(0), 16))

        return jax.jit(lambda: jax.lax.map(one, jnp.arange(len(ALL))))()

    return {d: of(d) for d in (1, 4)}


@pytest.mark.parametrize("d", [1, 4])
def test_values_and_gradients_are_finite_and_say_something(told, d):
    values, gradients = told[d]
    assert np.isfinite(values).all()
    assert np.isfinite(gradients).all()
    assert (np.std(values, axis=1) > 1e-3).all()
    assert (np.abs(gradients).max(axis=(1, 2)) > 1e-3).all()


def test_a_term_that_is_off_counts_for_nothing_and_powers_multiply():
    key = jax.random.key(1)
    on = jnp.array([1.0, 0.0, 1.0])
    few = kinds.KINDS[:2]
    terms = jax.vmap(draw_term, (0, None, None, 0))(jax.random.split(key, 3), jnp.arange(2), jnp.zeros(2), on)
    x = jnp.array([0.3, -0.2])
    each = [few[int(terms.kind[i])](x, jax.tree.map(lambda leaf, i=i: leaf[i], terms)) for i in range(3)]
    np.testing.assert_allclose(log_likelihood(few, terms, x), each[0] + each[2], rtol=1e-6)
    powers = jnp.array([0.5, 3.0, 2.0])
    np.testing.assert_allclose(log_likelihood(few, terms, x, powers), 0.5 * each[0] + 2 * each[2], rtol=1e-6)
