"""Tempered SMC against a conjugate posterior far from its prior."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.tempering import temper
from pfbr.particles.particles import equally_weighted


def test_it_reaches_a_posterior_eight_standard_deviations_away():
    """N(0, 1) prior, an observation at 16 with unit noise: N(8, ½), log evidence log N(16; 0, 2). The chance of a false
    alarm is that of five standard errors of 512 particles."""
    log_prior = lambda x: -0.5 * x[:, 0] ** 2 - 0.5 * jnp.log(2 * jnp.pi)
    log_likelihood = lambda x: -0.5 * (x[:, 0] - 16.0) ** 2 - 0.5 * jnp.log(2 * jnp.pi)
    draws = equally_weighted(jax.random.normal(jax.random.key(0), (512, 1)))
    particles, log_evidence = jax.jit(lambda k, p: temper(k, p, log_prior, log_likelihood))(jax.random.key(1), draws)
    assert abs(float(jnp.mean(particles.points)) - 8.0) < 5 * np.sqrt(0.5 / 512) * 1.5
    assert abs(float(jnp.std(particles.points)) - np.sqrt(0.5)) < 0.12
    assert abs(float(log_evidence) - (-64.0 - 0.5 * np.log(4 * np.pi))) < 1.0
    exact = -0.5 * (particles.points[:, 0] - 8.0) ** 2 / 0.5 - 0.5 * np.log(np.pi)
    np.testing.assert_allclose(particles.log_density - exact, np.mean(particles.log_density - exact), atol=1e-3)
