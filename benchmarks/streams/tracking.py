"""Tracking in the plane (position, velocity): one of three sensors at a time, irregular times, 15 % missing."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.brute_force import by_bootstrap, by_informed_starts
from benchmarks.streams.problem import Problem, Simulated, Truth, draw
from pfbr.models.base import StateSpaceModel
from pfbr.models.base import normal_log_densities as normal

SENSORS = np.array([[0.0, 0.0], [100.0, 0.0], [50.0, 90.0]], np.float32)
STEPS = 150
VAGUE, INFORMED = (20.0, 20.0, 2.0, 2.0), (3.0, 3.0, 0.5, 0.5)  # spreads of the prior


class Tracking(StateSpaceModel):
    """Integrated white acceleration; a range or a bearing from the sensor that `inputs` names."""

    noise: float  # of a range, or of a bearing in radians
    process: float  # standard deviation of the velocity's random walk in one unit of time
    start: tuple[float, ...] = (40.0, 30.0, 0.0, 0.0)
    spread: tuple[float, ...] = VAGUE
    bearings: bool = eqx.field(static=True, default=False)

    @property
    def dim(self) -> int:
        return 4

    def prior_from_normal(self, z):
        return jnp.asarray(self.start) + jnp.asarray(self.spread) * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (4,)))

    def log_prior(self, x):
        return jnp.sum(normal(x, jnp.asarray(self.start), jnp.asarray(self.spread)))

    def _roots(self, dt):
        """Of the covariance of position and velocity noise, [[a, 0], [b, c]] in each direction."""
        a = jnp.sqrt(dt**3 / 3)
        b = dt**2 / 2 / a
        return self.process * a, self.process * b, self.process * jnp.sqrt(jnp.maximum(dt - b**2, 1e-12))

    def sample_transition(self, key, x, *, dt):
        return self.transition_from_normal(x, jax.random.normal(key, (4,)), dt=dt)

    def transition_from_normal(self, x, z, *, dt):
        a, b, c = self._roots(dt)
        return jnp.concatenate([x[:2] + dt * x[2:] + a * z[:2], x[2:] + b * z[:2] + c * z[2:]])

    def log_transition(self, x_next, x, *, dt):
        a, b, c = self._roots(dt)
        first = (x_next[:2] - x[:2] - dt * x[2:]) / a
        second = (x_next[2:] - x[2:] - b * first) / c
        return -0.5 * jnp.sum(first**2 + second**2) - 2 * jnp.log(a * c) - 2 * jnp.log(2 * jnp.pi)

    def _seen(self, x, inputs):
        apart = x[:2] - jnp.asarray(SENSORS)[inputs["sensor"]]
        if self.bearings:
            return jnp.arctan2(apart[1], apart[0])[None]
        return jnp.sqrt(jnp.sum(apart**2) + 1e-9)[None]  # the root has a slope at a sensor too

    def log_likelihood(self, x, observation, *, inputs):
        error = observation - self._seen(x, inputs)
        if self.bearings:
            error = jnp.arctan2(jnp.sin(error), jnp.cos(error))
        return normal(error, 0.0, self.noise)

    def sample_observation(self, key, x, *, inputs):
        return self._seen(x, inputs) + self.noise * jax.random.normal(key)


class TrackingProblem(Problem):
    def simulate(self, seed: int) -> Simulated:
        rng = np.random.default_rng(seed)
        dt = (rng.exponential(1.0, STEPS) + 0.05).astype(np.float32)
        inputs = {"sensor": rng.integers(3, size=STEPS).astype(np.int32)}
        return draw(self.model, seed, dt, inputs, rng.random(STEPS) <= 0.15)

    def find_truth(self, seed: int) -> Truth:
        """With little noise and a vague prior a bootstrap filter of 200,000 collapses on some streams."""
        by_many = by_informed_starts if self.name.endswith("little") else by_bootstrap
        return by_many(self.model, self.simulate(seed), seed)


PROBLEMS = [
    TrackingProblem("ranges-much", Tracking(1.0, 0.5)),
    TrackingProblem("ranges-little", Tracking(1.0, 0.1)),
    TrackingProblem("ranges-informed", Tracking(1.0, 0.5, spread=INFORMED)),
    TrackingProblem("bearings-much", Tracking(0.02, 0.5, bearings=True)),
    TrackingProblem("bearings-little", Tracking(0.02, 0.1, bearings=True)),
]
