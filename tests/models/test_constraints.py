"""Maps from free numbers: their inverse, their stretch by autodiff, and densities on both scales."""

import functools
import math

import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

import pfbr
from pfbr.errors import ModelError
from pfbr.models.constraints import Free, _checked_shape

CONSTRAINTS = {
    "free": Free((2, 2)),
    "positive": pfbr.positive,
    "positive(3)": pfbr.positive(3),
    "interval": pfbr.interval(-1.0, 2.5),
    "interval(2, 2)": pfbr.interval(0, 1)(2, 2),
    "simplex(2)": pfbr.simplex(2),
    "simplex(5)": pfbr.simplex(5),
    "ordered(4)": pfbr.ordered(4),
    "correlation(2)": pfbr.correlation(2),
    "correlation(4)": pfbr.correlation(4),
}


def independent(name, value):
    """The numbers of a value that determine the rest: all but a simplex's last, the lower triangle of a correlation."""
    if name.startswith("simplex"):
        return value[:-1]
    if name.startswith("correlation"):
        return value[jnp.tril_indices(value.shape[0], -1)]
    return value.reshape(-1)


def obeys(name, value):
    value = np.asarray(value)
    if name.startswith("positive"):
        return np.all(value > 0)
    if name.startswith("interval"):
        low, high = (-1.0, 2.5) if name == "interval" else (0.0, 1.0)
        return np.all((value > low) & (value < high))
    if name.startswith("simplex"):
        return np.all(value > 0) and abs(value.sum() - 1) < 1e-12
    if name.startswith("ordered"):
        return np.all(np.diff(value) > 0)
    if name.startswith("correlation"):
        unit = np.allclose(np.diagonal(value), 1, atol=1e-12) and np.allclose(value, value.T)
        return unit and np.all(np.linalg.eigvalsh(value) > 0)
    return True


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_there_and_back_and_the_stretch_between(name, x64):
    """Nine digits: the inverse, the constraint itself, and log |det J| by forward mode."""
    constraint = CONSTRAINTS[name]

    @jax.jit
    def both(free):
        value = constraint.constrain(free)
        jacobian = jax.jacfwd(lambda z: independent(name, constraint.constrain(z)))(free)
        return value, constraint.unconstrain(value), constraint.log_det(free), jacobian

    for seed in range(3):
        free = np.random.default_rng(seed).normal(size=constraint.size) * 1.5
        value, back, log_det, jacobian = both(jnp.asarray(free))
        assert value.shape == constraint.shape
        assert obeys(name, value)
        np.testing.assert_allclose(back, free, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_values_and_derivatives_are_finite_far_out(name):
    """In float32: a particle that strays must not take the others with it as NaN."""
    constraint = CONSTRAINTS[name]

    @jax.jit
    @jax.vmap
    def all_of(free):
        value = constraint.constrain(free)
        slopes = jax.jacrev(lambda z: (constraint.constrain(z), constraint.log_det(z)))(free)
        return value, constraint.log_det(free), slopes

    far = jnp.array([[-50.0], [50.0]]) * jnp.ones(constraint.size)
    for leaf in jax.tree.leaves(all_of(far)):
        assert np.all(np.isfinite(leaf))


def log_gamma(x):
    return scipy.stats.gamma.logpdf(x, 3.0)


# Laws on the user's own scale, and the number of points a side of a grid over free numbers
LAWS = {
    "positive": (pfbr.positive, log_gamma, 4001),
    "interval": (pfbr.interval(-1.0, 2.5), lambda x: scipy.stats.beta.logpdf((x + 1) / 3.5, 2, 3) - np.log(3.5), 4001),
    "simplex": (pfbr.simplex(3), lambda x: scipy.stats.dirichlet.logpdf(x.T, [2.0, 3.0, 4.0]), 301),
    "ordered": (pfbr.ordered(2), lambda x: np.log(2) + scipy.stats.norm.logpdf(x).sum(-1), 801),
    # all correlation matrices alike: their volume is 2 for k = 2, and π²/2 for k = 3
    "correlation of two": (pfbr.correlation(2), lambda x: np.full(len(x), -np.log(2.0)), 4001),
    "correlation of three": (pfbr.correlation(3), lambda x: np.full(len(x), np.log(2 / np.pi**2)), 81),
}


@functools.cache
def on_grid(name):
    """Free numbers on a grid, and the mass of each cell under the law of the constrained ones."""
    constraint, log_density, num = LAWS[name]
    reach = 12.0 if constraint.size < 3 else 8.0
    ticks = np.linspace(-reach, reach, num)
    free = np.stack(np.meshgrid(*[ticks] * constraint.size, indexing="ij"), -1).reshape(-1, constraint.size)
    values, log_det = jax.jit(jax.vmap(lambda z: (constraint.constrain(z), constraint.log_det(z))))(jnp.asarray(free))
    values = np.asarray(values)
    if name == "simplex":  # SciPy wants a sum of exactly one
        values = np.clip(values, 1e-12, None)
        values /= values.sum(-1, keepdims=True)
    return free, np.exp(log_density(values) + np.asarray(log_det)) * (ticks[1] - ticks[0]) ** constraint.size


@pytest.mark.parametrize("name", LAWS)
def test_a_density_on_the_users_scale_is_one_of_the_free_numbers(name, x64):
    """∫ p(constrain(z)) |det J(z)| dz = 1, on a grid; to 1e-3."""
    assert abs(np.sum(on_grid(name)[1]) - 1) < 1e-3


DRAWS = {
    "positive": lambda rng: rng.gamma(3.0, size=20_000),
    "interval": lambda rng: 3.5 * rng.beta(2, 3, size=20_000) - 1,
    "simplex": lambda rng: rng.dirichlet([2.0, 3.0, 4.0], size=20_000),
    "ordered": lambda rng: np.sort(rng.normal(size=(20_000, 2)), axis=1),
    "correlation of two": lambda rng: np.eye(2) + rng.uniform(-1, 1, 20_000)[:, None, None] * (1 - np.eye(2)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_on_the_users_scale_follow_the_density_of_the_free_numbers(name, x64):
    """Mean and second moment of 20,000 unconstrained draws against the density on a grid, z = 6."""
    constraint, (free, mass) = LAWS[name][0], on_grid(name)
    draws = jnp.asarray(DRAWS[name](np.random.default_rng(0)))
    unconstrained = np.asarray(jax.jit(jax.vmap(constraint.unconstrain))(draws))
    error = 6 * unconstrained.std(0) / np.sqrt(len(unconstrained))
    assert np.all(np.abs(unconstrained.mean(0) - mass @ free) < error + 1e-3)
    error = 6 * (unconstrained**2).std(0) / np.sqrt(len(unconstrained))
    assert np.all(np.abs((unconstrained**2).mean(0) - mass @ free**2) < error + 2e-3)


def test_zero_is_the_middle():
    middle = {"simplex(5)": 0.2, "correlation(4)": np.eye(4), "positive": 1.0, "interval": 0.75}
    for name, expected in middle.items():
        constraint = CONSTRAINTS[name]
        np.testing.assert_allclose(jax.jit(constraint.constrain)(jnp.zeros(constraint.size)), expected, atol=1e-6)


def test_sizes():
    assert [c.size for c in CONSTRAINTS.values()] == [4, 1, 3, 1, 4, 1, 4, 4, 1, 6]
    assert pfbr.positive.shape == ()
    assert pfbr.positive(2, 3) == pfbr.positive((2, 3))


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: pfbr.interval(1.0, 1.0), "lower one first"),
        (lambda: pfbr.interval(0.0, math.inf), "finite"),
        (lambda: pfbr.interval(0.0, math.nan), "finite"),
        (lambda: pfbr.simplex(1), "simplex"),
        (lambda: pfbr.ordered(2.0), "ordered"),
        (lambda: pfbr.correlation(True), "correlation"),
        (lambda: pfbr.positive(0), "above zero"),
        (lambda: pfbr.positive(-1, 2), "above zero"),
        (lambda: _checked_shape((2.5,)), "whole numbers"),
    ],
)
def test_what_is_no_constraint_is_refused(build, word):
    with pytest.raises(ModelError, match=word):
        build()
