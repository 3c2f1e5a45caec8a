"""Predictions are means over particles, made before the observation is seen."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import OnePassSMC
from pfbr.inference.method import record, start
from pfbr.metrics.prequential import log_predictive, prequential
from pfbr.models import GaussianMean, MiniBatch
from pfbr.models.simulate import simulate
from pfbr.paper.digits.model import LabelledRows
from pfbr.particles.particles import Particles

KEY = jax.random.key(0)


def test_a_prediction_is_the_mean_over_particles():
    particles = Particles(jnp.array([[0.0, 1.0], [2.0, -1.0]]), jnp.log(jnp.array([0.25, 0.75])))
    batch = jnp.array([[1.0, 1.0, 1.0], [0.5, 0.0, 0.0]])
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    expected = [0.25 * sigmoid(1.0) + 0.75 * sigmoid(1.0), 0.25 * sigmoid(0.0) + 0.75 * sigmoid(-1.0)]
    model = MiniBatch(LabelledRows(2), 2)
    assert np.allclose(log_predictive(particles, model, batch), np.log(expected), atol=1e-6)
    assert np.allclose(log_predictive(particles, model.model, batch[1]), np.log(expected[1:]), atol=1e-6)


def test_it_looks_before_it_updates():
    model, method = MiniBatch(GaussianMean(2), 3), OnePassSMC()
    observations = jax.jit(lambda key: simulate(key, model, 3).observations)(KEY)
    predicted = eqx.filter_jit(prequential)(KEY, method, model, observations, 16)
    begun = method.particles(eqx.filter_jit(start)(KEY, method, model, 16).own)
    said = record(KEY, method, model, observations, 16).particles
    assert np.allclose(predicted[0], log_predictive(begun, model, observations[0]), atol=1e-5)
    after = jax.tree.map(lambda leaf: leaf[1], said)
    assert np.allclose(predicted[2], log_predictive(after, model, observations[2]), atol=1e-5)
