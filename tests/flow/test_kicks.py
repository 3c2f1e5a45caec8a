"""A corrected affine flow in closed form: however sharp an observation is, it stays finite, and so do its gradients."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.likelihood import Likelihood
from pfbr.inference.architectures import build, choose
from pfbr.models.base import Model
from pfbr.models.base import normal_log_densities as normal
from pfbr.particles.particles import equally_weighted


class SharpRange(Model):
    """A distance known to half a metre, of a place known to twenty: four unknowns, two of them not seen."""

    @property
    def dim(self):
        return 4

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (4,)))

    def prior_from_normal(self, z):
        return jnp.array([40.0, 30.0, 0.0, 0.0]) + jnp.array([20.0, 20.0, 2.0, 2.0]) * z

    def log_prior(self, x):
        return jnp.sum(normal(x, jnp.array([40.0, 30.0, 0.0, 0.0]), jnp.array([20.0, 20.0, 2.0, 2.0])))

    def log_likelihood(self, x, observation):
        return jnp.sum(normal(observation, jnp.sqrt(jnp.sum(x[:2] ** 2) + 1e-6), 0.5))


def lost(operator, cloud, likelihood, model):
    """Mean log density minus log target after one update: what training lowers."""
    density = jax.vmap(model.log_prior)(cloud)
    moved = operator.move(jax.random.key(0), equally_weighted(cloud, density), likelihood)
    target = jax.vmap(model.log_prior)(moved.points) + likelihood.values(moved.points)
    return jnp.mean(moved.log_density - target)


def test_a_sharp_first_observation_leaves_a_finite_gradient():
    """Across the line of sight the log likelihood curves upwards, by thousands of the prior's variances: a step that
    followed that would throw the cloud out of the range of float32, and training would lose the task."""
    model = SharpRange()
    cloud = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(1), 32))
    likelihood = Likelihood(model, jnp.array([35.0]))
    operator = build(jax.random.key(0), choose("equivariant", model, width=4, steps=4))
    small = lambda leaf: 0.01 * jax.random.normal(jax.random.key(2), leaf.shape)
    operator = eqx.tree_at(lambda o: o.velocity.last, operator, replace_fn=small)
    weights, rest = eqx.partition(operator, eqx.is_inexact_array)
    value, gradient = jax.jit(jax.value_and_grad(lambda w: lost(eqx.combine(w, rest), cloud, likelihood, model)))(
        weights
    )
    assert np.isfinite(value)
    for leaf in jax.tree.leaves(gradient):
        assert np.all(np.isfinite(leaf))
