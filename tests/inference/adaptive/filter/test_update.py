"""One observation absorbed: by weighing where that is enough, and right by every other way too."""

import functools

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.absorbed import FLOWED, OVERSAMPLED, TEMPERED, WEIGHED, Absorbed
from pfbr.inference.adaptive.filter.cloud import equally_weighted
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.filter.update import Ways, absorb, is_enough, weighed

N = 600  # more than are tempered
NORMALS = jax.random.permutation(jax.random.key(0), jax.scipy.special.ndtri((jnp.arange(N) + 0.5) / N))[:, None]
BENT = jnp.sinh(NORMALS)  # no Gaussian
GRID = np.linspace(-30, 30, 20001)
LOG_PRIOR = -0.5 * np.arcsinh(GRID) ** 2 - 0.5 * np.log1p(GRID**2) - 0.5 * np.log(2 * np.pi)  # of the bent


@jax.jit
def absorbed(points, centre, std, ancestors) -> Absorbed:
    """A normal observation; every particle predicts the same law, so that its draws are as good as anybody's. Half of
    the particles are then copies of others in a first round of tempering."""
    log_likelihood = lambda x: -0.5 * ((x[:, 0] - centre) / std) ** 2
    redraw = lambda key, times: (jnp.sinh(jax.random.normal(key, (N * times, 1))), None)
    # more ancestors than there are: further draws are never enough
    settings = Settings(tempered=512, ancestors=ancestors, enough=jnp.where(ancestors > 1, jnp.inf, 128.0))
    return absorb(jax.random.key(1), equally_weighted(points), log_likelihood, settings, Ways(redraw))


@functools.cache
def truth(centre, std):
    """Mean, standard deviation, log evidence on a grid."""
    logs = LOG_PRIOR - 0.5 * ((GRID - centre) / std) ** 2
    p = np.exp(logs - logs.max())
    mean = (p / p.sum()) @ GRID
    return mean, np.sqrt((p / p.sum()) @ (GRID - mean) ** 2), np.log(p.sum() * (GRID[1] - GRID[0])) + logs.max()


def test_weighing_comes_first_and_is_what_weights_say():
    result = absorbed(BENT, 0.5, 10.0, 0.5)
    assert result.move == WEIGHED
    assert result.rounds == 0
    plain = weighed(equally_weighted(BENT), -0.5 * ((BENT[:, 0] - 0.5) / 10) ** 2)
    np.testing.assert_allclose(result.cloud.log_weights, plain.cloud.log_weights, rtol=1e-5)
    np.testing.assert_array_equal(result.cloud.points, BENT)


def test_a_gaussian_cloud_flows_to_the_formula():
    before, result = equally_weighted(NORMALS), absorbed(NORMALS, 1.0, 0.2, 0.5)
    mean, variance = float(before.mean[0]), float(before.covariance[0, 0])
    assert result.move == FLOWED
    assert float(result.cloud.mean[0]) == pytest.approx((mean * 0.04 + variance) / (variance + 0.04), abs=1e-4)
    assert float(result.cloud.covariance[0, 0]) == pytest.approx(0.04 * variance / (variance + 0.04), rel=1e-3)


@pytest.mark.parametrize(("ancestors", "move"), [(0.1, OVERSAMPLED), (2.0, TEMPERED)], ids=["oversampled", "tempered"])
def test_further_draws_or_tempering_give_the_posterior(ancestors, move):
    result = absorbed(BENT, 2.0, 0.2, ancestors)
    mean, std, evidence = truth(2.0, 0.2)
    assert result.move == move
    assert result.cloud.points.shape == (N, 1)
    assert not bool(result.unfinished)
    assert abs(float(result.cloud.mean[0]) - mean) < 0.4 * std
    assert float(result.log_predictive) == pytest.approx(evidence, abs=0.5)


def test_many_particles_may_lose_most_of_them():
    """With an error as small as that of 128 independent ones, weighing is enough, however many there are."""
    result = weighed(equally_weighted(jnp.zeros((4096, 1))), jnp.where(jnp.arange(4096) < 200, 0.0, -30.0))
    told = lambda error: Absorbed(**{**vars(result), "error": jnp.asarray(error)})
    assert bool(is_enough(told(0.05), Settings()))
    assert not bool(is_enough(told(0.2), Settings()))
    assert not bool(is_enough(told(0.0), Settings()))
