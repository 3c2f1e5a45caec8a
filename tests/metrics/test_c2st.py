"""A classifier cannot tell particles from the law they were drawn from (see also `test_ranking`)."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.metrics.c2st import c2st
from pfbr.particles.particles import Particles, equally_weighted, normalise

judged = jax.jit(c2st)


def test_two_far_apart_are_always_told_apart():
    near, far = jax.random.normal(jax.random.key(0), (2, 64, 2)) + jnp.array([[[0.0]], [[50.0]]])
    accuracy, error = judged(jax.random.key(1), equally_weighted(near), far)
    assert float(accuracy) == 1.0
    assert float(error) > 0  # never certain


def test_weighted_particles_are_resampled_first():
    """Half the particles are far away and have no weight: without them one law is left."""
    points = np.random.default_rng(0).normal(size=(128, 2))
    points[64:] += 50
    weighted = Particles(jnp.asarray(points), normalise(jnp.where(jnp.arange(128) < 64, 0.0, -30.0)))
    truth = jnp.asarray(np.random.default_rng(1).normal(size=(128, 2)))
    assert float(judged(jax.random.key(2), weighted, truth).value) < 0.75
    assert float(judged(jax.random.key(2), equally_weighted(jnp.asarray(points)), truth).value) > 0.7


def test_too_few_true_draws_are_refused():
    with pytest.raises(InputError, match="true draws"):
        c2st(jax.random.key(0), equally_weighted(jnp.zeros((4, 2))), jnp.zeros((3, 2)))
