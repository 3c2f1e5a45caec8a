"""One number that moves: log volatility, the log rate of counts, a growth model whose square is seen (two modes).

Truth: a grid filter, right to 0.001 sd (checked by halving the grid).
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import Problem, Simulated, Truth, draw
from pfbr.inference.method import Stream
from pfbr.models.base import StateSpaceModel
from pfbr.models.base import normal_log_densities as normal
from pfbr.models.conditions import Conditions, bind

STEPS, GRID = 200, 1200


class Scalar(StateSpaceModel):
    """Subclasses give `start()`, mean and standard deviation of the prior, and `moved(x)`, those of the next x."""

    @property
    def dim(self) -> int:
        return 1

    def prior_from_normal(self, z):
        mean, std = self.start()
        return mean + std * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (1,)))

    def log_prior(self, x):
        return normal(x[0], *self.start())

    def sample_transition(self, key, x):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)))

    def transition_from_normal(self, x, z):
        mean, std = self.moved(x)
        return mean + std * z

    def log_transition(self, x_next, x):
        return normal(x_next, *self.moved(x))[0]


class StochasticVolatility(Scalar):
    mu: float = 0.0
    phi: float = 0.97
    sigma: float = 0.2

    def start(self):
        return self.mu, self.sigma / np.sqrt(1 - self.phi**2)

    def moved(self, x):
        return self.mu + self.phi * (x - self.mu), self.sigma

    def log_likelihood(self, x, observation):
        return normal(observation, 0.0, jnp.exp(0.5 * x))

    def sample_observation(self, key, x):
        return jnp.exp(0.5 * x) * jax.random.normal(key)


class Counts(Scalar):
    """Poisson, or negative binomial where `dispersion` is finite; x is the log rate, a random walk."""

    sigma: float = 0.15
    dispersion: float = eqx.field(static=True, default=float("inf"))

    def start(self):
        return 1.0, 1.5

    def moved(self, x):
        return x, self.sigma

    def log_likelihood(self, x, observation):
        rate, gammaln, r = jnp.exp(x), jax.scipy.special.gammaln, self.dispersion
        if r == float("inf"):
            return observation * x - rate - gammaln(observation + 1)
        ways = gammaln(observation + r) - gammaln(r) - gammaln(observation + 1)
        return ways + r * jnp.log(r / (r + rate)) + observation * (x - jnp.log(r + rate))

    def sample_observation(self, key, x):
        k1, k2 = jax.random.split(key)
        rate = jnp.exp(x[0])
        if self.dispersion < float("inf"):
            rate = rate * jax.random.gamma(k1, self.dispersion) / self.dispersion
        return jax.random.poisson(k2, rate).astype(jnp.float32)[None]


class Growth(Scalar):
    """The growth model of Gordon, Salmond and Smith (1993); `inputs` count the steps."""

    def start(self):
        return 0.0, np.float32(np.sqrt(5.0))

    def moved(self, x, k):
        return 0.5 * x + 25 * x / (1 + x**2) + 8 * jnp.cos(1.2 * k), np.float32(np.sqrt(10.0))

    def sample_transition(self, key, x, *, inputs):
        return self.transition_from_normal(x, jax.random.normal(key, (1,)), inputs=inputs)

    def transition_from_normal(self, x, z, *, inputs):
        mean, std = self.moved(x, inputs["k"])
        return mean + std * z

    def log_transition(self, x_next, x, *, inputs):
        return normal(x_next, *self.moved(x, inputs["k"]))[0]

    def log_likelihood(self, x, observation):
        return normal(observation, x**2 / 20, 1.0)

    def sample_observation(self, key, x):
        return x**2 / 20 + jax.random.normal(key)


@dataclass(frozen=True)
class ScalarProblem(Problem):
    bounds: tuple[float, float]  # of the grid

    def simulate(self, seed: int) -> Simulated:
        growth = isinstance(self.model, Growth)
        inputs = {"k": np.arange(1, STEPS + 1, dtype=np.float32)} if growth else None
        missing = np.zeros(STEPS, bool) if growth else np.random.default_rng(seed).random(STEPS) < 0.15
        return draw(self.model, seed, np.ones(STEPS, np.float32), inputs, missing)

    def find_truth(self, seed: int) -> Truth:
        found = grid_filter(self.model, self.simulate(seed).stream, *self.bounds)
        mean, variance, gained = (np.asarray(part) for part in found)
        return Truth(mean[:, None], variance[:, None, None], gained)

    def truth(self, seed: int) -> Truth:
        return replace(super().truth(seed), error=1e-3)


@eqx.filter_jit
def grid_filter(model: Scalar, stream: Stream, low: float, high: float):
    """Means, variances and log predictives; float32 sums of smooth positive terms."""
    at = jnp.linspace(low, high, GRID)[:, None]
    cell = (high - low) / (GRID - 1)

    def step(p, row):
        here = bind(model, Conditions(row.dt, None, row.inputs, row.observed), shape=row.observations.shape)
        to_from = jax.vmap(lambda to: jax.vmap(lambda x: here.log_transition(to, x))(at))(at)
        p = jnp.exp(to_from) @ p * cell
        value = jax.vmap(lambda x: here.log_likelihood(x, row.observations))(at)
        top = jnp.max(value)
        p = p * jnp.exp(value - top)
        total = jnp.sum(p) * cell
        p = p / total
        mean = jnp.sum(p * at[:, 0]) * cell
        return p, (mean, jnp.sum(p * (at[:, 0] - mean) ** 2) * cell, jnp.log(total) + top)

    return jax.lax.scan(step, jnp.exp(jax.vmap(model.log_prior)(at)), stream)[1]


PROBLEMS = [
    ScalarProblem("volatility", StochasticVolatility(), (-6.0, 6.0)),
    ScalarProblem("poisson", Counts(), (-8.0, 10.0)),
    ScalarProblem("negative-binomial", Counts(dispersion=3.0), (-8.0, 10.0)),
    ScalarProblem("growth", Growth(), (-45.0, 45.0)),
]
