"""Lorenz's weather in three numbers, seen every now and then with noise: where is it, and when does a filter lose it?

    python examples/assimilation.py --picture docs/images/gallery_assimilation.png

Settings of Sakov, Oliver and Bertino (2012): steps of 0.01, all three numbers seen every 25 steps, variance 2.
`benchmarks/assimilation.py` has Lorenz-96 in ten and forty dimensions, 25 streams, and the published figures.
"""

import jax
import numpy as np
import pictures
from common import command_line
from jax import numpy as jnp

import pfbr

STEP, BETWEEN, VARIANCE = 0.01, 25, 2.0
START = np.array([1.509, -1.531, 25.46], np.float32)


def drift(x):
    return jnp.array([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]])


def runge_kutta(x):
    a = drift(x)
    b = drift(x + STEP / 2 * a)
    c = drift(x + STEP / 2 * b)
    return x + STEP / 6 * (a + 2 * b + 2 * c + drift(x + STEP * c))


class Lorenz(pfbr.StateSpaceModel):
    """Deterministic dynamics: there is no transition density, and none is needed."""

    dim: int = 3

    def prior_from_normal(self, z):
        return START + np.float32(np.sqrt(VARIANCE)) * z

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (3,)))

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x, START, np.sqrt(VARIANCE)))

    def sample_transition(self, key, x):
        return jax.lax.fori_loop(0, BETWEEN, lambda i, x: runge_kutta(x), x)

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x, np.float32(np.sqrt(VARIANCE)))


def simulate(reports: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States and observations, (T, 3) each."""
    rng, model = np.random.default_rng(seed), Lorenz()
    start = jnp.asarray(START + np.sqrt(VARIANCE) * rng.normal(size=3), jnp.float32)
    move = lambda x, _: (model.sample_transition(None, x),) * 2
    states = np.asarray(jax.lax.scan(move, start, None, reports)[1])
    return states, states + np.sqrt(VARIANCE) * rng.normal(size=states.shape)


def main(reports: int = 440, seed: int = 1, num_particles: int = 100, picture: str = "") -> dict:
    states, seen = simulate(reports, seed)
    figures, errors = {"error of the observations alone": float(np.sqrt(VARIANCE))}, {}
    for method, particles in (("auto", num_particles), ("enkf", num_particles), ("smc", 8 * num_particles)):
        trace = pfbr.run(Lorenz(), seen, method=method, num_particles=particles, key=1)
        errors[method] = np.sqrt(np.mean((trace.mean() - states) ** 2, axis=1))
        figures[f"{method}, {particles} particles"] = float(errors[method][40:].mean())
        if method == "auto":
            found = trace.mean()
    if picture:
        pictures.assimilation(picture, states, seen, found, errors)
    return figures


if __name__ == "__main__":
    command_line(main)
