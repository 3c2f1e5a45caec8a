"""The learned correction is none before it is learned, moves nothing without information, and adds information up."""

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import numpy as jnp

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities import AffineVelocity, ResidualVelocity
from pfbr.models import GaussianMean, GaussianMixture, MiniBatch
from tests.weights import filled


@eqx.filter_jit
def at(velocity, t, points, likelihood, context=None):
    """Velocity and divergence of a set at time t."""
    if context is None:
        context = velocity.prepare(jax.random.key(2), points, likelihood)
    return velocity(t, points, points, context, likelihood)


def small(seed, scale=1.0):
    return filled(seed, lambda: ResidualVelocity(jax.random.key(0), 2, width=7, num_features=5), scale)


def test_an_untrained_residual_is_the_training_free_velocity():
    points, t = jax.random.normal(jax.random.key(1), (64, 2)), jnp.asarray(0.3)
    likelihood = Likelihood(GaussianMixture(), jnp.ones(1))
    fresh = ResidualVelocity(jax.random.key(0), 2)
    for ours, theirs in zip(at(fresh, t, points, likelihood), at(AffineVelocity(), t, points, likelihood), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


class Flat(GaussianMean):
    """An observation that says nothing."""

    def log_likelihood(self, x, observation):
        return 0 * jnp.sum(x)


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.1, 2.0))
def test_without_information_nothing_moves(seed, scale):
    """At any time, to the last bit; a flow adds up nothing but such velocities."""
    points = jnp.asarray(np.random.default_rng(seed).normal(size=(32, 2)), jnp.float32)
    likelihood = Likelihood(Flat(2), jnp.ones(2))
    for velocity in (small(seed, scale), AffineVelocity()):
        value, divergence = at(velocity, jnp.asarray(0.4), points, likelihood)
        np.testing.assert_array_equal(value, np.zeros((32, 2)))
        np.testing.assert_array_equal(divergence, np.zeros(32))


@pytest.mark.parametrize("name", ["gaussian", "residual"])
def test_information_adds(name, x64):
    """At a given set and time, two observations together give the sum of the two velocities, and of the divergences."""
    velocity = small(3) if name == "residual" else AffineVelocity()
    points, t = jnp.asarray(np.random.default_rng(0).normal(size=(20, 2))), jnp.asarray(0.4)
    single, first, second = GaussianMixture(), jnp.asarray([0.5]), jnp.asarray([-2.0])
    context = eqx.filter_jit(velocity.prepare)(jax.random.key(0), points, Likelihood(single, first))
    both = at(velocity, t, points, Likelihood(MiniBatch(single, 2), jnp.stack([first, second])), context)
    apart = [at(velocity, t, points, Likelihood(single, o), context) for o in (first, second)]
    for together, a, b in zip(both, *apart, strict=True):
        np.testing.assert_allclose(together, a + b, rtol=1e-9, atol=1e-12)
