"""The learned map among the ways of a filter: taken where it is all but exact, never where it leaves a mode behind."""

import functools

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.absorbed import FLOWED, OVERSAMPLED, Absorbed
from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.update import Ways, absorb
from pfbr.inference.adaptive.general import shipped
from pfbr.particles.qmc import sobol_normal

N = 256
CLOUD = sobol_normal(jax.random.key(2), N, 3)
DRAWS = np.random.default_rng(0).normal(size=(2_000_000, 2)).astype(np.float32)


def ring(x):
    """The distance from a place beside the middle of the cloud."""
    return -0.5 * ((jnp.sqrt((x[..., 0] - 2.0) ** 2 + x[..., 1] ** 2 + 1e-6) - 1.6) / 0.2) ** 2


def mirrored(x):
    """Two places that are as likely, far from each other."""
    return jnp.logaddexp(-20 * (x[..., 0] - 1.5) ** 2, -20 * (x[..., 0] + 1.5) ** 2)


def absorbed(log_likelihood, settings, redraw=None) -> Absorbed:
    ways = Ways(redraw, transport=settings.map)
    go = jax.jit(lambda cloud: absorb(jax.random.key(1), cloud, log_likelihood, settings, ways))
    return go(equally_weighted(CLOUD))


@functools.cache
def truth(log_likelihood):
    values = np.asarray(log_likelihood(DRAWS))
    weights = np.exp(values - values.max())
    return (weights / weights.sum()) @ DRAWS, np.log(weights.mean()) + values.max()


def test_a_ring_is_taken_in_at_once_and_right():
    with_map, without = absorbed(ring, Settings()), absorbed(ring, Settings(learned=False))
    assert with_map.move == FLOWED
    assert bool(with_map.learned)
    assert without.move != FLOWED
    assert not bool(without.learned)
    mean, evidence = truth(ring)
    np.testing.assert_allclose(with_map.cloud.mean[:2], mean, atol=0.12)
    assert float(with_map.log_predictive) == pytest.approx(evidence, abs=0.2)
    assert float(with_map.cloud.ess) > 0.8 * N


def test_no_mode_is_left_behind():
    result = absorbed(mirrored, Settings())
    assert 0.2 < float(result.cloud.weights @ (result.cloud.points[:, 0] > 0)) < 0.8


def test_in_a_space_a_flow_comes_before_further_draws():
    """On a line it is the other way round; and where neither flow is right, further draws are what is left."""
    redraw = lambda key, times: (jax.random.normal(key, (N * times, 3)), None)
    assert absorbed(ring, Settings(), redraw).move == FLOWED
    assert absorbed(mirrored, Settings(), redraw).move == OVERSAMPLED


def test_the_map_may_be_left_out_or_be_another():
    assert Settings(learned=False).map is None
    mine = jax.tree.map(lambda leaf: 0 * leaf, shipped())
    assert Settings(transport=mine).map is mine
    assert Settings().map is shipped()
