"""The frame of a set has mean zero and second moment one, and exists for every set."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import numpy as jnp

from pfbr.particles.whitening import whitening_of

SETS = {
    "more unknowns than particles": lambda key: jax.random.normal(key, (5, 12)),
    "two particles": lambda key: jax.random.normal(key, (2, 3)),
    "one particle": lambda key: jax.random.normal(key, (1, 3)),
    "a collapsed direction": lambda key: jax.random.normal(key, (64, 3)) * jnp.array([1.0, 1e-9, 1.0]),
    "all on a line": lambda key: jax.random.normal(key, (64, 1)) * jnp.ones(3),
    "identical points": lambda key: jnp.full((64, 3), 2.5),
    "identical points at zero": lambda key: jnp.zeros((64, 3)),
    "far from zero": lambda key: 100.0 + 0.1 * jax.random.normal(key, (64, 3)),
    "large": lambda key: 1e6 * jax.random.normal(key, (64, 3)),
    "small": lambda key: 1e-6 * jax.random.normal(key, (64, 3)),
}


@jax.jit
def summary(points):
    frame = whitening_of(points)
    whitened = frame.whiten(points)
    gradient = jax.grad(lambda p: jnp.sum(jnp.cos(whitening_of(p).whiten(p))) + whitening_of(p).log_det)(points)
    return frame, whitened, frame.restore(whitened), frame.log_det, gradient


@given(size=st.sampled_from([(8, 1), (64, 3)]), seed=st.integers(0, 99), power=st.integers(-3, 3))
def test_whitened_points_have_mean_zero_and_second_moment_one(size, seed, power):
    """To 1e-5: the ridge takes 1e-6 of the average variance, float32 the rest."""
    (n, d), rng = size, np.random.default_rng(seed)
    mix = rng.normal(size=(d, d)) + 2 * np.eye(d)
    points = jnp.asarray(10.0**power * (rng.normal(size=(n, d)) @ mix + rng.normal(size=d)), jnp.float32)
    spread = np.linalg.cond(np.cov(np.asarray(points).T.reshape(d, -1)).reshape(d, d))
    frame, whitened, restored, log_det, _ = summary(points)
    tolerance = 1e-5 * max(1.0, spread)  # a flat direction feels the ridge more
    np.testing.assert_allclose(jnp.mean(whitened, 0), 0, atol=tolerance)
    np.testing.assert_allclose(whitened.T @ whitened / n, np.eye(d), atol=tolerance)
    np.testing.assert_allclose(restored, points, atol=1e-5 * 10.0**power * max(1.0, spread**0.5) * 10)
    cov = np.cov(np.asarray(points, dtype=np.float64).T.reshape(d, -1), ddof=0).reshape(d, d)
    np.testing.assert_allclose(log_det, 0.5 * np.linalg.slogdet(cov)[1], atol=1e-4 * max(1.0, spread))
    assert np.array_equal(frame.scale, np.tril(frame.scale))


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_a_frame(name):
    points = SETS[name](jax.random.key(0))
    frame, whitened, restored, log_det, gradient = summary(points)
    for value in (*jax.tree.leaves(frame), whitened, restored, log_det, gradient):
        assert np.all(np.isfinite(value))
    assert np.max(np.abs(whitened)) < 100
    np.testing.assert_allclose(restored, points, rtol=1e-4, atol=1e-4 * float(jnp.max(jnp.abs(points)) + 1e-30))


def test_vectors_and_covectors_keep_the_derivative_of_a_function_along_a_velocity(x64):
    """dℓ/dt is the same in both coordinates: (scaleᵀ ∇ℓ) · v = ∇ℓ · (scale v); and scale · inverse_scale = 1."""
    points, g, v = jnp.asarray(np.random.default_rng(0).normal(size=(3, 20, 4)))

    @jax.jit
    def both(points, g, v):
        frame = whitening_of(points)
        moved = frame.restore(frame.whiten(points) + 1e-3 * v)
        return frame, frame.covectors(g), frame.vectors(v), moved

    frame, covectors, vectors, moved = both(points, g, v)
    np.testing.assert_allclose(np.sum(covectors * v, -1), np.sum(g * vectors, -1), rtol=1e-9)
    np.testing.assert_allclose(frame.scale @ frame.inverse_scale, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(moved - points, 1e-3 * vectors, atol=1e-12)


def test_weights_count_as_copies_do(x64):
    points = np.random.default_rng(1).normal(size=(6, 2))
    copies = np.array([1, 3, 0, 2, 1, 1])
    weighted = jax.jit(whitening_of)(jnp.asarray(points), jnp.asarray(copies / 8))
    copied = jax.jit(whitening_of)(jnp.asarray(np.repeat(points, copies, axis=0)))
    np.testing.assert_allclose(weighted.mean, copied.mean, atol=1e-12)
    np.testing.assert_allclose(weighted.scale, copied.scale, atol=1e-12)
