"""Long chains find the posterior of the formula, and say how healthy they are."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.metrics.nuts import SampleTruth, nuts
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.simulate import simulate

MODELS = {"still": lambda: GaussianMean(2, observation_std=1.0), "moving": lambda: LinearDynamics.random(0, 2)}


@pytest.mark.parametrize("name", ["still", pytest.param("moving", marks=pytest.mark.slow)])
def test_it_finds_the_kalman_posterior(name):
    """Mean within z = 5 of its own effective sample size, healthy chains."""
    model = MODELS[name]()
    observations = simulate(jax.random.key(5), model, 3).observations
    truth = nuts(jax.random.key(0), model, observations, stages=[3], num_draws=300, num_warmup=300)
    exact = jax.jit(lambda o: kalman(model, o))(observations)
    error = np.sqrt(np.diagonal(np.asarray(exact.cov[-1])) / np.asarray(truth.ess[0]))
    assert np.all(np.asarray(truth.r_hat) < 1.03)
    assert np.all(np.asarray(truth.ess) > 100)
    assert np.all(np.abs(np.asarray(truth.mean[0] - exact.mean[-1])) < 5 * error)


def test_draws_are_picked_without_repetition():
    truth = SampleTruth(jnp.arange(10.0).reshape(5, 2), jnp.ones(2), jnp.full(2, 5.0))
    assert sorted(np.asarray(truth.sample(jax.random.key(0), 5))[:, 0].tolist()) == [0.0, 2.0, 4.0, 6.0, 8.0]
    np.testing.assert_array_equal(truth.mean, [4.0, 5.0])
    with pytest.raises(InputError, match="5 draws"):
        truth.sample(jax.random.key(0), 6)
    with pytest.raises(InputError, match="no normalised density"):
        truth.log_density(jnp.zeros((1, 2)))


def test_stages_outside_the_stream_are_refused():
    for stages in ([], [0], [4]):
        with pytest.raises(InputError, match="between 1 and 3"):
            nuts(jax.random.key(0), GaussianMean(2), jnp.zeros((3, 2)), stages=stages)
