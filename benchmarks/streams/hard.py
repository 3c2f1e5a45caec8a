"""Streams on which filters fail: mirror images, rings, outliers, noise that is too small, tiny, or not what is said.

Truth: under the model as it stands, by a grid where there is one unknown, else by 200,000 particles or by Kalman.
"""

from dataclasses import dataclass, replace

import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.streams.problem import Problem, Simulated, Truth, draw
from benchmarks.streams.scalar import Scalar, ScalarProblem
from benchmarks.streams.tracking import Tracking, TrackingProblem
from pfbr.models.base import normal_log_densities as normal

STEPS = 60


class Mirror(Scalar):
    """A random walk whose distance from zero is seen; at report 20 and every tenth from there on, the place itself."""

    def start(self):
        return 0.0, 5.0

    def moved(self, x):
        return x, np.float32(0.3)

    def log_likelihood(self, x, observation, *, inputs):
        return normal(observation, jnp.where(inputs["whole"] > 0, x, jnp.abs(x)), 0.3)

    def sample_observation(self, key, x, *, inputs):
        return jnp.where(inputs["whole"] > 0, x, jnp.abs(x)) + 0.3 * jax.random.normal(key)


class Bent(Scalar):
    """A random walk seen through x + x³/10."""

    noise: float = 0.3

    def start(self):
        return 0.0, 2.0

    def moved(self, x):
        return 0.95 * x, np.float32(0.5)

    def log_likelihood(self, x, observation):
        return normal(observation, x + x**3 / 10, np.float32(self.noise))

    def sample_observation(self, key, x):
        return x + x**3 / 10 + self.noise * jax.random.normal(key)


@dataclass(frozen=True)
class HardScalar(ScalarProblem):
    """`outlier`: added to report 30. `true_noise`: of the observations, where the model is wrong about it."""

    outlier: float = 0.0
    true_noise: float | None = None

    def simulate(self, seed: int) -> Simulated:
        steps = np.arange(STEPS)
        inputs = None
        if isinstance(self.model, Mirror):
            inputs = {"whole": ((steps >= 20) & (steps % 10 == 0)).astype(np.float32)}
        model = self.model if self.true_noise is None else replace_noise(self.model, self.true_noise)
        made = draw(model, seed, np.ones(STEPS, np.float32), inputs, np.zeros(STEPS, bool))
        observations = made.observations.copy()
        observations[30] += self.outlier
        return replace(made, observations=observations)

    def truth(self, seed: int) -> Truth:
        return replace(self.find_truth(seed), error=1e-3)  # quick enough not to be kept


def replace_noise(model: Bent, noise: float) -> Bent:
    return Bent(noise=noise)


class Sharp(TrackingProblem):
    """Ranges of 0.2 under a prior of 20: rings at first."""

    def simulate(self, seed: int) -> Simulated:
        return super().simulate(seed).first(STEPS)


PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        HardScalar("mirror", Mirror(), (-25.0, 25.0)),
        HardScalar("bent", Bent(), (-12.0, 12.0)),
        HardScalar("outlier", Bent(), (-12.0, 12.0), outlier=8.0),
        HardScalar("wrong-noise", Bent(noise=0.1), (-12.0, 12.0), true_noise=1.0),
        HardScalar("tiny-noise", Bent(noise=0.03), (-12.0, 12.0)),
        Sharp("ranges-sharp", Tracking(0.2, 0.5)),
    )
}
