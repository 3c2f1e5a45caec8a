"""Posteriors and traces in ArviZ's form: draws, weights, and what the step said."""

import arviz
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.inference.info import Info
from pfbr.inference.posterior import Posterior
from pfbr.models import GaussianMean
from pfbr.particles.particles import Particles

MODEL = GaussianMean(2, observation_std=1.0)


def test_a_posterior_and_a_trace_go_to_arviz():
    posterior = pfbr.Session(MODEL, method="gaussian", num_particles=32).update([0.5, 0.2])
    data = pfbr.to_arviz(posterior, name="theta")
    np.testing.assert_allclose(data["posterior"]["theta"].values[0], posterior.particles)
    np.testing.assert_allclose(data["sample_stats"]["log_density"].values[0], posterior.log_density)
    summary = arviz.summary(data, kind="stats")
    np.testing.assert_allclose(np.asarray(summary["mean"], float), posterior.mean(), atol=0.02)  # rounded words in 1.x
    trace = pfbr.run(MODEL, np.zeros((3, 4, 2)), method="gaussian", num_particles=32)
    chains = pfbr.to_arviz(trace, stage=1)
    assert chains["posterior"]["x"].shape == (3, 32, 2)
    np.testing.assert_allclose(chains["weighted_posterior"]["x"].values, trace.particles[:, 1])
    with pytest.raises(InputError, match="4 stages"):
        pfbr.to_arviz(trace, stage=4)
    with pytest.raises(InputError, match="Posterior"):
        pfbr.to_arviz([1.0])


def test_weighted_particles_become_equally_weighted_draws():
    log_density = jnp.arange(4.0)
    uneven = Particles(log_density[:, None], jnp.log(jnp.array([0.1, 0.1, 0.3, 0.5])), log_density)
    weighted = pfbr.to_arviz(Posterior(uneven, Info()))
    drawn = weighted["posterior"]["x"].values[0, :, 0]
    np.testing.assert_array_equal(drawn, [1, 2, 3, 3])
    np.testing.assert_array_equal(weighted["sample_stats"]["log_density"].values[0], drawn)  # draw by draw
    np.testing.assert_allclose(np.exp(weighted["weighted_posterior"]["log_weight"].values).sum(), 1, rtol=1e-5)
