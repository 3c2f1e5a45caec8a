"""MMD² is the U-statistic of scikit-learn's kernels, and its stated error is its spread."""

import jax
import numpy as np
import pytest
import sklearn.metrics.pairwise as sk
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.metrics.mmd import KERNELS, mmd2
from pfbr.particles.particles import Particles, equally_weighted, normalise

compiled_mmd2 = jax.jit(mmd2, static_argnums=2)


def test_the_stated_error_of_mmd_is_its_spread():
    """Within a factor of 1.6 of the spread over 200 runs, for samples of one law and of two.

    A standard deviation from 200 runs is known to about 8 % (the law is skewed): more than five of these.
    """

    def one(key):
        particle_key, truth_key = jax.random.split(key)
        points, draws = (0.35 * jax.random.normal(k, (n, 3)) for k, n in ((particle_key, 64), (truth_key, 200)))
        shifts = jnp.array([0.0, 0.2])
        return {k: jax.vmap(lambda s, k=k: mmd2(equally_weighted(points + s), draws, k))(shifts) for k in KERNELS}

    results = jax.jit(lambda keys: jax.lax.map(one, keys))(jax.random.split(jax.random.key(5), 200))
    for name, (values, errors) in results.items():
        ratio = np.sqrt(np.mean(np.asarray(errors) ** 2, axis=0)) / np.std(np.asarray(values), axis=0)
        assert np.all((ratio > 1 / 1.6) & (ratio < 1.6)), (name, ratio)


def test_kernels_are_those_of_scikit_learn():
    a, b = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    theirs = {
        "rbf": sk.rbf_kernel,
        "laplacian": sk.laplacian_kernel,
        "polynomial": sk.polynomial_kernel,
        "sigmoid": sk.sigmoid_kernel,
        "cosine": sk.cosine_similarity,
    }
    for name, kernel in KERNELS.items():
        np.testing.assert_allclose(kernel(jnp.asarray(a), jnp.asarray(b)), theirs[name](a, b), rtol=2e-5, atol=1e-6)


def test_mmd_is_the_u_statistic_written_out():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 2)).astype(np.float32), rng.normal(1.0, 1.0, size=(8, 2)).astype(np.float32)
    kxx, kyy, kxy = sk.rbf_kernel(x), sk.rbf_kernel(y), sk.rbf_kernel(x, y)
    off = lambda k: (k.sum() - np.trace(k)) / (len(k) * (len(k) - 1))
    got = compiled_mmd2(equally_weighted(jnp.asarray(x)), jnp.asarray(y), "rbf").value
    np.testing.assert_allclose(got, off(kxx) + off(kyy) - 2 * kxy.mean(), rtol=1e-4)


def test_mmd_of_two_gaussians_has_a_closed_form():
    """RBF with gamma 1 in one dimension: E exp(−(x−y)²) for normals of variance 1 is exp(−Δ²/5)/√5."""
    key_x, key_y = jax.random.split(jax.random.key(3))
    x, y = jax.random.normal(key_x, (1000, 1)), 1.0 + jax.random.normal(key_y, (1000, 1))
    value, error = compiled_mmd2(equally_weighted(x), y, "rbf")
    assert abs(value - 2 * (1 - np.exp(-1 / 5)) / np.sqrt(5)) < 5 * error  # z = 5: 1 in 2 million


def test_weights_count_as_copies_do():
    points = np.random.default_rng(0).normal(size=(8, 2))
    copies = np.array([1, 3, 0, 2, 1, 1, 0, 0])
    draws = jnp.asarray(np.random.default_rng(1).normal(size=(20, 2)))
    weighted = Particles(jnp.asarray(points), normalise(jnp.log(jnp.asarray(copies) + 1e-30)))
    # a copy is no independent draw, so that only the cross term, which has no diagonal, can be compared
    k_xy = sk.rbf_kernel(points, draws)
    w = copies / copies.sum()
    k_xx = sk.rbf_kernel(points)
    own = (w @ k_xx @ w - np.sum(w**2)) / (1 - np.sum(w**2))
    k_yy = sk.rbf_kernel(draws)
    other = (k_yy.sum() - 20) / (20 * 19)
    found = compiled_mmd2(weighted, draws, "rbf").value
    np.testing.assert_allclose(found, own + other - 2 * np.mean(w @ k_xy), rtol=1e-3, atol=1e-5)


def test_an_unknown_kernel_is_refused():
    with pytest.raises(InputError, match="rbf"):
        mmd2(equally_weighted(jnp.zeros((4, 2))), jnp.zeros((5, 2)), "gaussian")
