"""Sets become vectors that do not know their order; batches too, unless order is meant to count."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.networks import Batch, DeepSet, Dense, OrderedBatch, RawObservation
from tests.weights import filled


def points(n=6, d=3, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, d)), jnp.float32)


def test_layers_are_tanh_of_affine_maps():
    dense = filled(0, lambda: Dense(jax.random.key(0), (3, 5, 2)))
    y = np.asarray(points(), np.float64)
    for weight, bias in zip(dense.weights, dense.biases, strict=True):
        y = np.tanh(y @ np.asarray(weight) + np.asarray(bias))
    np.testing.assert_allclose(jax.jit(lambda x: dense(x))(points()), y, rtol=1e-4, atol=1e-5)


def test_a_set_has_no_order_and_any_size():
    """Twice the set is the same set; the summary is a mean, so that more members do not make it larger."""
    x = points()
    for summary in (
        filled(1, lambda: DeepSet(jax.random.key(0), 3, 4, layers=2)),
        filled(1, lambda: Batch(jax.random.key(0), 3, 4)),
    ):
        of = jax.jit(lambda p, summary=summary: summary(p))
        np.testing.assert_allclose(of(x), of(x[::-1]), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(of(x), of(jnp.concatenate([x, x])), rtol=1e-4, atol=1e-6)
        assert not np.allclose(of(x), of(x + 0.3))
        assert of(x).shape == (4,)


def test_an_ordered_batch_has_an_order():
    ordered = filled(2, lambda: OrderedBatch(jax.random.key(0), 3, 4))
    of = jax.jit(lambda p: ordered(p))
    assert of(points()).shape == (4,)
    assert not np.allclose(of(points()), of(points()[::-1]), atol=1e-3)


def test_a_raw_observation_is_itself():
    np.testing.assert_array_equal(RawObservation()(jnp.arange(6.0).reshape(2, 3)), np.arange(6.0))
