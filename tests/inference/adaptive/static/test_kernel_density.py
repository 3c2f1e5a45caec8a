"""The density of a cloud is one Gaussian for a Gaussian cloud and narrower for a bent one; moments are kept."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.kernel_density import evaluate_density, fit_kernels
from tests.inference.adaptive.static.problems import linear_gaussian

fitted = jax.jit(fit_kernels)
each = jax.jit(lambda density, points: jax.vmap(density.log_density)(points))


def equal(n):
    return jnp.full(n, -jnp.log(n))


def test_a_gaussian_cloud_is_one_gaussian(x64):
    points = 2.0 + jax.random.normal(jax.random.key(0), (64, 2)) @ jnp.array([[1.0, 0.5], [0.0, 0.2]])
    density = fitted(points, equal(64))
    assert float(density.width) == 1.0
    mean, cov = jnp.mean(points, 0), jnp.cov(points.T, ddof=0)
    said = each(density, points[:5])
    known = jax.vmap(lambda x: -0.5 * (x - mean) @ jnp.linalg.solve(cov, x - mean))(points[:5])
    np.testing.assert_allclose(jnp.diff(said), jnp.diff(known), rtol=1e-6)


def test_a_ring_is_not():
    angle = jnp.linspace(0, 2 * jnp.pi, 128, endpoint=False)
    ring = jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1) + 0.02 * jax.random.normal(jax.random.key(1), (128, 2))
    density = fitted(ring, equal(128))
    assert float(density.width) < 0.5
    on, off = each(density, jnp.stack([ring[0], jnp.zeros(2)]))
    assert on > off + 1.0


def test_before_the_first_row_the_prior_itself_stands():
    target, points = linear_gaussian(), jax.random.normal(jax.random.key(2), (32, 2))
    density = fitted(points, equal(32))
    row = jnp.array([1.0, 0.0, 0.5])
    evaluate = jax.jit(lambda first: evaluate_density(target, density, first, points, row))
    first = evaluate(jnp.asarray(True))
    np.testing.assert_allclose(first.past, jax.vmap(target.log_prior)(points), rtol=1e-5)
    later = evaluate(jnp.asarray(False))
    np.testing.assert_allclose(later.past, each(density, points), rtol=1e-5)
    np.testing.assert_allclose(later.new, first.new)
