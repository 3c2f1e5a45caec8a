"""Expectations of the test functions have their closed form."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.metrics.integral_discrepancy import Bilinear, integral_discrepancy, random_functions
from pfbr.metrics.truth import GaussianTruth
from pfbr.particles.particles import equally_weighted


def test_expectations_have_their_closed_form():
    """Formulas against a quarter of a million draws, z = 6."""
    truth = GaussianTruth(jnp.array([0.5, -0.3, 0.8]), 0.1 * jnp.eye(3) + 0.02, jnp.zeros(()))
    functions = random_functions(jax.random.key(7), 3)

    @jax.jit
    def both():
        draws = truth.sample(jax.random.key(0), 250_000)
        return {
            name: (jax.vmap(f)(draws).reshape(250_000, -1), f.gaussian_mean(truth.mean, truth.cov))
            for name, f in functions.items()
        }

    for values, expected in both().values():
        values = np.asarray(values, np.float64)
        z = (values.mean(0) - np.asarray(expected)) / (values.std(0) / 500)
        assert np.all(np.abs(z) < 6)
    assert isinstance(functions["(Ax+a)(Bx+b)"], Bilinear)


def test_it_is_the_distance_of_the_means():
    truth = GaussianTruth(jnp.zeros(2), jnp.eye(2), jnp.zeros(()))
    particles = equally_weighted(jnp.array([[2.0, 4.0], [4.0, 4.0]]))
    found = integral_discrepancy(particles, random_functions(jax.random.key(0), 2)["x"], truth)
    assert abs(float(found.value) - 5.0) < 1e-5
    assert abs(float(found.error) - np.sqrt(0.5)) < 1e-5
