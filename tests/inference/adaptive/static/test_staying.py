"""Moves that agree with the weights are made; those that lead elsewhere, or widen the cloud, are not."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.static import rejuvenation
from pfbr.inference.adaptive.static.rejuvenation import rejuvenate
from pfbr.inference.adaptive.static.state import Move, init
from pfbr.inference.adaptive.static.staying import astray
from pfbr.inference.adaptive.static.weighing import begin, weigh
from tests.inference.adaptive.static.problems import banana

N = 256
judged = jax.jit(astray)
equal = jnp.full(N, -jnp.log(N))


def weighted(seed: int):
    """Draws of N(0, I) weighed to N(0.5, I), in units a million apart."""
    x = jax.random.normal(jax.random.key(seed), (N, 2))
    log_weights = jax.nn.log_softmax(0.5 * x[:, 0])
    return x * jnp.array([1e-3, 1e3]), log_weights


def moved(seed: int, mean: float, width: float):
    x = jax.random.normal(jax.random.key(1000 + seed), (N, 2))
    return (x * width + jnp.array([mean, 0.0])) * jnp.array([1e-3, 1e3])


def test_a_cloud_of_the_same_law_is_hardly_ever_astray():
    found = [bool(judged(*weighted(seed), moved(seed, 0.5, 1.0), equal)) for seed in range(100)]
    assert sum(found) <= 3


@pytest.mark.parametrize(("mean", "width"), [(1.5, 1.0), (0.5, 2.0), (0.5, 0.4)])
def test_another_mean_or_width_is_seen(mean, width):
    assert all(bool(judged(*weighted(seed), moved(seed, mean, width), equal)) for seed in range(20))


def test_what_is_not_finite_is_astray():
    broken = moved(0, 0.5, 1.0).at[0, 0].set(jnp.nan)
    assert bool(judged(*weighted(0), broken, equal))


def test_a_few_particles_say_nothing():
    """A sharp row leaves two or three of them: moves are all there is."""
    points, _ = weighted(0)
    few = jnp.where(jnp.arange(N) < 3, -jnp.log(3.0), -jnp.inf)
    assert not bool(judged(points, few, moved(0, 5.0, 3.0), equal))
    np.testing.assert_array_equal(judged(points, few, points, equal), False)


def test_a_cloud_that_stays_is_weighed_exactly_and_leaves_the_closed_form(monkeypatch):
    """Whatever the moves said: points as they were, the row in weights and in what is carried, no closed form after."""
    monkeypatch.setattr(rejuvenation, "astray", lambda *clouds: jnp.ones((), bool))
    target, rows = banana(), jnp.array([[1.0], [0.4]])
    points = jax.random.normal(jax.random.key(0), (64, 2))
    state = begin(target, init(jax.random.key(1), points, rows[0], history=0))
    before, _, _ = weigh(target, state, rows[0])
    before = eqx.tree_at(lambda s: s.misfit, before, jnp.zeros(()))  # as if the closed form had held so far
    after, info = eqx.filter_jit(rejuvenate)(jax.random.key(2), target, before, rows[1])
    np.testing.assert_array_equal(after.points, before.points)
    values = jax.vmap(lambda x: target.log_likelihood(x, rows[1]))(before.points)
    np.testing.assert_allclose(after.log_weights, jax.nn.log_softmax(before.log_weights + values), atol=1e-5)
    np.testing.assert_allclose(jnp.diff(after.carried.values), jnp.diff(before.carried.values + values), atol=1e-4)
    assert jnp.isinf(after.misfit)
    assert int(info.move) == Move.WEIGHED
