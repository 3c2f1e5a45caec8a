"""Log weights are cleaned, and normalised even where there are none."""

import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.weights import clean, normalise, uniform_log_weights


def test_what_is_no_weight_is_left_out():
    np.testing.assert_array_equal(
        clean(jnp.array([0.0, jnp.nan, jnp.inf, -jnp.inf])), [0, -jnp.inf, -jnp.inf, -jnp.inf]
    )


def test_normalised_weights_sum_to_one_and_say_what_they_summed_to():
    weights, total = normalise(jnp.log(jnp.array([1.0, 3.0])))
    np.testing.assert_allclose(jnp.exp(weights), [0.25, 0.75], rtol=1e-6)
    np.testing.assert_allclose(total, np.log(4.0), rtol=1e-6)
    np.testing.assert_allclose(jnp.sum(jnp.exp(uniform_log_weights(5, jnp.float32))), 1.0, rtol=1e-6)


def test_no_weight_at_all_is_said():
    weights, total = normalise(jnp.full(3, -jnp.inf))
    assert np.all(np.isneginf(weights))
    assert np.isneginf(total)
