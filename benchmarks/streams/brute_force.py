"""Truth by many particles: a bootstrap filter, or, where that collapses, the default method itself."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import Simulated, Truth
from pfbr.baselines import BootstrapSMC
from pfbr.inference.adaptive.filter.settings import Settings
from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.method import Given, Method, Stream, advance, record, start, step_key
from pfbr.models.base import StateSpaceModel
from pfbr.models.conditions import Conditions
from pfbr.particles.particles import weighted_cov, weighted_mean

PARTICLES = 200_000  # of the bootstrap filter
CAREFUL_PARTICLES = 4096  # of the default method


@eqx.filter_jit
def moments(key, method: Method, model: StateSpaceModel, stream: Stream, num_particles: int):
    """What `record` gives, reduced to moments step by step: 200,000 particles of 150 steps need not be kept."""

    def one(state, row):
        given = Given(row.dt, row.inputs, row.observed)
        key_here = step_key(key, state.stage + 1)
        state, info = advance(key_here, method, model, state, row.observations, given)
        particles = method.particles(state.own)
        return state, (weighted_mean(particles), weighted_cov(particles), info.log_predictive)

    first = jax.tree.map(lambda leaf: leaf[0], stream)
    example = Conditions(first.dt, None, first.inputs, first.observed)
    begun = start(key, method, model, num_particles, example, stream.observations.shape[1:])
    return jax.lax.scan(one, begun, stream)[1]


def by_bootstrap(model: StateSpaceModel, simulated: Simulated, seed: int) -> Truth:
    found = moments(jax.random.key(seed + 777), BootstrapSMC(), model, simulated.stream, PARTICLES)
    return Truth(*(np.asarray(part) for part in found))


def by_default_method(model: StateSpaceModel, simulated: Simulated, seed: int) -> Truth:
    """Two runs with 4,096 particles, averaged; half their distance is the error. Not independent of what is judged."""
    method = Adaptive(filter=Settings(second_look=0, moves=8))
    runs = [record(jax.random.key(seed + 99 * k), method, model, simulated.stream, CAREFUL_PARTICLES) for k in (1, 2)]
    means = np.array([jax.vmap(weighted_mean)(run.particles) for run in runs], float)
    covariances = np.array([jax.vmap(weighted_cov)(run.particles) for run in runs], float)
    gained = np.array([jnp.nan_to_num(run.info.log_predictive) for run in runs], float)
    truth = Truth(means.mean(0), covariances.mean(0), gained.mean(0))
    own = float(np.sqrt(np.mean(distances(means[0], truth) ** 2)))
    return Truth(truth.means, truth.covariances, truth.log_predictives, error=own)


def distances(means: np.ndarray, truth: Truth) -> np.ndarray:
    """Mahalanobis distance of each step's mean from the true one, over √d."""
    away = np.asarray(means, float) - truth.means
    inverse = np.linalg.pinv(truth.covariances.astype(float), hermitian=True)
    return np.sqrt(np.maximum(np.einsum("ti,tij,tj->t", away, inverse, away), 0) / away.shape[1])
