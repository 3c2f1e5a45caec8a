"""k-hat is that of ArviZ, and is defined for any set of weights."""

import arviz
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.particles.pareto import pareto_k, tail_size

k_hat = jax.jit(pareto_k)


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0, 2.0])
def test_k_hat_is_that_of_arviz(spread):
    for n in (30, 256, 1000):
        log_weights = spread * np.random.default_rng(n).normal(size=n) ** 3 / 2
        ours = float(k_hat(jnp.asarray(log_weights, jnp.float32)))
        np.testing.assert_allclose(ours, float(arviz.psislw(log_weights)[1]), rtol=2e-3, atol=2e-3)


def test_k_hat_of_equal_weights_is_zero_and_of_too_few_infinite():
    assert float(k_hat(jnp.zeros(256))) == 0.0
    assert np.isinf(k_hat(jnp.zeros(10)))
    assert tail_size(20) == 4  # fewer than five: no law is fitted to them


@pytest.mark.parametrize("shift", [-1e4, 300.0])
def test_k_hat_does_not_depend_on_scale(shift):
    log_weights = 0.5 * np.random.default_rng(0).normal(size=256) ** 2
    plain, shifted = (float(k_hat(jnp.asarray(log_weights + s, jnp.float32))) for s in (0.0, shift))
    assert abs(plain - shifted) < 0.02  # float32 holds 10⁴ to 10⁻³
