"""Indices that the code names are compared with sizes; numbers that change from trace to trace are seen."""

import itertools

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.models.traces import Outside, index_outside, same_constants, traced

X = jnp.zeros(2)
OUTSIDE = {
    "x[5]": (lambda x: x[5], (5, 2)),
    "x[-3]": (lambda x: x[-3], (-3, 2)),
    "an array of indices": (lambda x: x[jnp.array([0, 7])], (7, 2)),
    "NumPy's indices": (lambda x: x[np.array([0, 7])], (7, 2)),
    "two axes": (lambda x: jnp.eye(3)[1, 4] * x, (4, 3)),
    "set": (lambda x: x.at[4].set(0.0), (4, 2)),
    "in a loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, t: t + x[9], 0.0), (9, 2)),
    "in a branch": (lambda x: jax.lax.cond(x[0] > 0, lambda: x[4], lambda: x[0]), (4, 2)),
    "behind jit": (lambda x: jax.jit(lambda y: y[6])(x), (6, 2)),
}
INSIDE = {
    "x[1]": lambda x: x[1] + x[-2],
    "an array": lambda x: x[jnp.array([0, -1])],
    "a slice beyond the end": lambda x: x[:9],
    "an index that depends on x": lambda x: x[(x[0] > 0).astype(int) + 5],
    "clamped on purpose": lambda x: jnp.take(x, jnp.array([0, 9]), mode="clip"),
    "left out on purpose": lambda x: x.at[jnp.array([0, 2])].set(0.0, mode="drop"),
    "filled on purpose": lambda x: x.at[7].get(mode="fill", fill_value=0.0),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_outside_is_found(name):
    function, (index, size) = OUTSIDE[name]
    assert index_outside(traced(function, X)[0]) == Outside(index, size)


@pytest.mark.parametrize("name", INSIDE)
def test_an_index_inside_or_meant_is_not(name):
    assert index_outside(traced(INSIDE[name], X)[0]) is None


def test_numbers_that_change_are_seen():
    count = itertools.count()
    rng = np.random.default_rng(0)
    for function in (lambda x: x + next(count), lambda x: x + rng.normal(size=2), lambda x: jnp.sum(x) * rng.normal()):
        assert not same_constants(traced(function, X)[0], traced(function, X)[0])
    for function in (
        jnp.sum,
        lambda x: x + np.arange(2.0),
        jax.nn.softmax,
        lambda x: jax.random.normal(jax.random.key(0), (2,)),
    ):
        assert same_constants(traced(function, X)[0], traced(function, X)[0])
