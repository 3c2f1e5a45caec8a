"""Lorenz-63 and Lorenz-96: deterministic dynamics, settings of the published tables. Truth: the simulated state."""

import functools
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import Problem, Simulated
from pfbr.models.base import StateSpaceModel, normal_log_densities

STEPS, BURN_IN = 440, 40  # reports of a stream, and those left out of its error


class Lorenz(StateSpaceModel):
    """Every so-many-th coordinate is seen, with normal errors. The prior lies around `centre`."""

    centre: jax.Array
    every: int = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    substep: float
    variance: float  # of an observation
    start_variance: float

    @property
    def dim(self) -> int:
        return self.centre.shape[0]

    def prior_from_normal(self, z):
        return self.centre + np.float32(np.sqrt(self.start_variance)) * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (self.dim,)))

    def log_prior(self, x):
        return jnp.sum(normal_log_densities(x, self.centre, np.float32(np.sqrt(self.start_variance))))

    def sample_transition(self, key, x):
        step = lambda i, x: runge_kutta(drift63 if self.dim == 3 else drift96, x, self.substep)
        return jax.lax.fori_loop(0, self.substeps, step, x)

    def log_likelihood(self, x, observation):
        return normal_log_densities(observation, x[:: self.every], np.float32(np.sqrt(self.variance)))

    def sample_observation(self, key, x):
        seen = x[:: self.every]
        return seen + np.float32(np.sqrt(self.variance)) * jax.random.normal(key, seen.shape)


def drift63(x):
    return jnp.array([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])


def drift96(x):
    return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8.0


def runge_kutta(f, x, dt):
    a = f(x)
    b = f(x + 0.5 * dt * a)
    c = f(x + 0.5 * dt * b)
    return x + dt / 6 * (a + 2 * b + 2 * c + f(x + dt * c))


@functools.cache
def on_the_attractor(size: int) -> np.ndarray:
    if size == 3:
        return np.array([1.509, -1.531, 25.46], np.float32)
    near_rest = np.full(size, 8.0, np.float32)
    near_rest[0] += 0.01
    step = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda i, x: runge_kutta(drift96, x, 0.05), x))
    return np.asarray(step(jnp.asarray(near_rest)))


@eqx.filter_jit
def path(model: Lorenz, seed):
    """States, observations, and the centre of the stream's prior: off its start by a draw of the prior's spread."""
    k1, k2, k3 = jax.random.split(jax.random.key(seed), 3)
    go = lambda i, x: model.sample_transition(k1, x)
    start = jax.lax.fori_loop(0, seed % 50 + 1, go, model.sample_prior(k1))  # a start of its own for every stream

    def step(x, key):
        x = model.sample_transition(key, x)
        return x, (x, model.sample_observation(key, x))

    _, (states, observations) = jax.lax.scan(step, start, jax.random.split(k2, STEPS))
    return states, observations, start + jnp.sqrt(model.start_variance) * jax.random.normal(k3, start.shape)


@dataclass(frozen=True)
class LorenzProblem(Problem):
    def _path(self, seed: int):
        base = eqx.tree_at(lambda m: m.centre, self.model, jnp.asarray(on_the_attractor(self.model.dim)))
        return path(base, jnp.asarray(seed))

    def model_of(self, seed: int) -> Lorenz:
        return eqx.tree_at(lambda m: m.centre, self.model, self._path(seed)[2])

    def simulate(self, seed: int) -> Simulated:
        states, observations, _ = self._path(seed)
        return Simulated(np.asarray(observations), np.asarray(states))


def lorenz(name: str, size: int, **settings) -> LorenzProblem:
    return LorenzProblem(name, Lorenz(np.zeros(size, np.float32), **settings))


PROBLEMS = [
    lorenz("lorenz63", 3, every=1, substeps=25, substep=0.01, variance=2.0, start_variance=2.0),
    lorenz("lorenz96-10", 10, every=2, substeps=1, substep=0.05, variance=1.5, start_variance=0.001),
    lorenz("lorenz96-40", 40, every=1, substeps=1, substep=0.05, variance=1.0, start_variance=0.001),
]
