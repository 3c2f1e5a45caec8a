"""Predator and prey: unknown rates, start and noise, each row one noisy look at both. d = 8. Truth by chains."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from benchmarks.static.densities import normal
from benchmarks.static.problem import Problem
from pfbr.models.base import Model

ROWS = 40
STEPS = 40  # of Runge and Kutta, from the start to a row: a row is its own integration
CENTRE = np.log([0.6, 0.03, 0.8, 0.03, 20.0, 10.0, 0.3, 0.3])
SPREAD = np.array([0.5, 0.5, 0.5, 0.5, 0.7, 0.7, 0.5, 0.5])


def solve(rates, start, time):
    """Log populations at `time`; in logarithms no step can leave the positive quadrant."""
    slope = lambda z: jnp.stack([rates[0] - rates[1] * jnp.exp(z[1]), -rates[2] + rates[3] * jnp.exp(z[0])])
    h = time / STEPS

    def one(z, _):
        k1 = slope(z)
        k2 = slope(z + 0.5 * h * k1)
        k3 = slope(z + 0.5 * h * k2)
        k4 = slope(z + h * k3)
        return jnp.clip(z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), -30.0, 8.0), None

    return jax.lax.scan(one, start, None, length=STEPS)[0]


class PredatorPrey(Model):
    """x = (log of four rates, log of both starts, log of both noises); y = log counts; inputs = (time,)."""

    dim: int = eqx.field(static=True, default=8)

    def sample_prior(self, key):
        return jnp.asarray(CENTRE) + SPREAD * jax.random.normal(key, (8,))

    def log_prior(self, x):
        return jnp.sum(normal(x, CENTRE, SPREAD))

    def log_likelihood(self, x, observation, *, inputs):
        return jnp.sum(normal(observation, solve(jnp.exp(x[:4]), x[4:6], inputs[0]), jnp.exp(x[6:])))


def predator_prey(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    times = np.linspace(0.5, 12.0, ROWS)
    rates, start = jnp.array([0.55, 0.028, 0.8, 0.024]), jnp.log(jnp.array([30.0, 6.0]))
    clean = np.asarray(jax.vmap(lambda t: solve(rates, start, t))(jnp.asarray(times)))
    y = clean + 0.25 * rng.standard_normal(clean.shape)
    unknowns = ["log_a", "log_b", "log_c", "log_d", "log_u0", "log_v0", "log_s0", "log_s1"]
    return Problem("predator-8", seed, PredatorPrey(), unknowns, y, times[:, None])
