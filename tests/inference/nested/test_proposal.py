"""Draws and density of the proposal belong together; weights are flattened until enough of a cloud counts."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.proposal import proposal_of


def test_the_density_is_that_of_the_draws():
    thetas = jnp.asarray(np.random.default_rng(0).normal(size=(64, 1)) * 2 + 5, jnp.float32)
    proposal = proposal_of(thetas, jnp.zeros(64))
    at = jnp.linspace(-25.0, 35.0, 4001)[:, None]
    mass = np.exp(proposal.log_density(at)) * 60 / 4000
    np.testing.assert_allclose(mass.sum(), 1, atol=1e-4)
    drawn = np.asarray(proposal.draw(jax.random.key(0), 4096))[:, 0]
    second = mass @ (at[:, 0] - 5) ** 2
    np.testing.assert_allclose(np.mean((drawn - 5) ** 2), second, rtol=0.03)


def test_one_heavy_particle_does_not_make_a_narrow_proposal():
    thetas = jnp.linspace(-1.0, 1.0, 101)[:, None]
    heavy = jnp.where(jnp.arange(101) == 50, 0.0, -100.0)
    assert proposal_of(thetas, heavy).frame.scale[0, 0] > 0.1
    flat = proposal_of(thetas, jnp.zeros(101))
    np.testing.assert_allclose(flat.frame.scale[0, 0], np.std(np.linspace(-1, 1, 101)), rtol=1e-3)
