"""A model that workers import: a walk in continuous time, seen through heavy tails; nothing can be below −50."""

import jax
import numpy as np
from jax import numpy as jnp

import pfbr


class Walk(pfbr.StateSpaceModel):
    dim: int = 1

    def sample_prior(self, key):
        return 2 * jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0], 0, 2)

    def sample_transition(self, key, x, *, dt, inputs):
        return x + inputs[0] * dt + jnp.sqrt(dt) * jax.random.normal(key, (1,))

    def log_likelihood(self, x, observation):
        value = jax.scipy.stats.t.logpdf(observation[0] - x[0], 4.0)
        return jnp.where(observation[0] < -50, -jnp.inf, value)


def rows(number: int, length: int, seed: int) -> dict[str, np.ndarray]:
    """Streams 0 … number − 1, each with its own times; one value in twenty is missing."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.2, 1.8, (number, length)), axis=1)
    push = rng.normal(scale=0.1, size=(number, length))
    values = rng.normal(size=(number, 1)) + np.cumsum(rng.normal(size=(number, length)), axis=1)
    values[rng.uniform(size=values.shape) < 0.05] = np.nan
    stream = np.repeat(np.arange(number), length)
    return {"sensor": stream, "t": times.ravel(), "y": values.ravel(), "push": push.ravel()}
