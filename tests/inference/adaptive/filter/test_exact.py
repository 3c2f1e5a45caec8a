"""Whether the affine flow is exact here: what is Gaussian and quadratic passes, what is not does not."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.exact import is_affine, is_exact, is_gaussian
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.particles.whitening import whitening_of

NORMALS = jax.random.normal(jax.random.key(0), (1024, 2))


def decided(points, log_likelihood):
    cloud = equally_weighted(points)
    one = jax.vmap(jax.value_and_grad(log_likelihood))
    return bool(is_exact(cloud, one(points)[0], one, Settings().misfit))


def test_third_moments_are_the_sum_over_pairs():
    z = whitening_of(NORMALS[:200]).whiten(NORMALS[:200])
    third = jnp.einsum("ni,nj,nk->ijk", z, z, z) / 200
    assert float(jnp.sum(third**2)) == pytest.approx(float(jnp.mean((z @ z.T) ** 3)), rel=1e-3)


@pytest.mark.parametrize("count", [256, 1024], ids=["all", "some first"])
def test_a_gaussian_cloud_under_a_quadratic_is_exact(count):
    quadratic = lambda x: -0.5 * jnp.sum((x - 1.0) ** 2)
    assert decided(NORMALS[:count], quadratic)
    assert not decided(NORMALS[:count], lambda x: quadratic(x) + 0.2 * x[0] ** 3)
    assert not decided(jnp.exp(NORMALS[:count]), quadratic)
    assert not decided(NORMALS[:count], lambda x: 0.0 * x[0]), "a flat likelihood moves nothing"


def test_two_modes_are_not_gaussian():
    apart = NORMALS + 4 * jnp.sign(NORMALS[:, :1])
    equal = jnp.full(1024, -np.log(1024.0), apart.dtype)
    assert bool(is_gaussian(NORMALS, equal))
    assert not bool(is_gaussian(apart, equal))


def test_dynamics_that_bend_a_cloud_are_not_affine():
    equal = jnp.full(1024, 1 / 1024.0, NORMALS.dtype)
    turned = NORMALS @ jnp.array([[0.5, 1.0], [-2.0, 0.3]]) + 7
    assert bool(is_affine(NORMALS, turned, equal))
    assert not bool(is_affine(NORMALS, turned.at[:, 0].add(0.2 * NORMALS[:, 1] ** 2), equal))
