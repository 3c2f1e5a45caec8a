"""Several numbers that move by themselves, each seen by itself, and turned together: no method is told which way.

Every number of the state depends on all observations then, while the truth stays a product of grid filters: exact in
any dimension.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import Problem, Simulated, Truth, draw
from benchmarks.streams.scalar import Counts, Scalar, StochasticVolatility, grid_filter
from pfbr.models.base import StateSpaceModel
from pfbr.models.base import normal_log_densities as normal

STEPS = 100


def rotation(dim: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, dim)))[0].astype(np.float32)


class Rotated(StateSpaceModel):
    """x = turn · h, and each entry of h is `one`."""

    one: Scalar
    turn: jax.Array

    @property
    def dim(self) -> int:
        return self.turn.shape[0]

    def prior_from_normal(self, z):
        mean, std = self.one.start()
        return self.turn @ (mean + std * z)

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (self.dim,)))

    def log_prior(self, x):
        return jnp.sum(normal(x @ self.turn, *self.one.start()))

    def sample_transition(self, key, x):
        return self.transition_from_normal(x, jax.random.normal(key, (self.dim,)))

    def transition_from_normal(self, x, z):
        mean, std = self.one.moved(x @ self.turn)
        return self.turn @ (mean + std * z)

    def log_transition(self, x_next, x):
        return jnp.sum(normal(x_next @ self.turn, *self.one.moved(x @ self.turn)))

    def log_likelihood(self, x, observation):
        return self.one.log_likelihood(x @ self.turn, observation)

    def sample_observation(self, key, x):
        keys = jax.random.split(key, self.dim)
        each = jax.vmap(lambda k, h: self.one.sample_observation(k, h[None]))(keys, x @ self.turn)
        return each.reshape(self.dim)


@dataclass(frozen=True)
class RotatedProblem(Problem):
    bounds: tuple[float, float]  # of the grids

    def simulate(self, seed: int) -> Simulated:
        missing = np.random.default_rng(seed).random(STEPS) < 0.15
        return draw(self.model, seed, np.ones(STEPS, np.float32), None, missing)

    def find_truth(self, seed: int) -> Truth:
        stream, turn = self.simulate(seed).stream, np.asarray(self.model.turn, float)
        alone = [
            replace(stream, observations=stream.observations[:, i : i + 1], observed=stream.observed[:, i : i + 1])
            for i in range(len(turn))
        ]
        found = [[np.asarray(part) for part in grid_filter(self.model.one, one, *self.bounds)] for one in alone]
        mean, variance, gained = (np.stack(part, axis=-1) for part in zip(*found, strict=True))
        return Truth(mean @ turn.T, np.einsum("ij,tj,kj->tik", turn, variance, turn), gained.sum(axis=1))

    def truth(self, seed: int) -> Truth:
        return replace(self.find_truth(seed), error=1e-3)  # made in a second: not kept


def _problem(name: str, one: Scalar, dim: int, bounds: tuple[float, float]) -> RotatedProblem:
    return RotatedProblem(f"{name}-{dim}", Rotated(one, jnp.asarray(rotation(dim))), bounds)


PROBLEMS = [
    *(_problem("volatility", StochasticVolatility(), dim, (-6.0, 6.0)) for dim in (4, 10)),
    *(_problem("poisson", Counts(), dim, (-8.0, 10.0)) for dim in (4, 10)),
]
