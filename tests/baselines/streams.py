"""Two problems with a closed form, and a method's last particles on them for many seeds."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.method import record
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.simulate import simulate
from pfbr.particles.particles import weighted_mean

STILL, MOVING = GaussianMean(2, observation_std=1.0), LinearDynamics.random(0, 2)


def stream(model, length=3):
    return jax.jit(lambda key: simulate(key, model, length).observations)(jax.random.key(5))


def truth_of(model, observations):
    return jax.jit(lambda o: kalman(model, o))(observations)


@eqx.filter_jit
def _runs(method, model, observations, num_particles, keys):
    def one(key):
        said = record(key, method, model, observations, num_particles)
        evidence = jnp.zeros(()) if said.info.log_evidence is None else said.info.log_evidence[-1]
        return jax.tree.map(lambda leaf: leaf[-1], said.particles), evidence

    return jax.vmap(one)(keys)


def last(method, model, observations, n, seeds=64, seed=0):
    """The particles after the stream, and the log evidence where the method tells, for many seeds."""
    return _runs(method, model, observations, n, jax.random.split(jax.random.key(seed), seeds))


def error_of_mean(method, model, observations, n, seeds=64):
    """Root mean square over seeds and coordinates."""
    particles, _ = last(method, model, observations, n, seeds)
    off = np.asarray(weighted_mean(particles)) - np.asarray(truth_of(model, observations).mean[-1])
    return np.sqrt(np.mean(off**2))
