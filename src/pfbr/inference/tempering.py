"""From prior particles to the posterior without a flow: switch the observation on in steps, resample, move by chains.

Adaptive tempered sequential Monte Carlo (Del Moral, Doucet and Jasra 2006): each temperature is the one at which the
effective sample size falls to half. It needs nothing but densities, and serves where the flow cannot be trusted.
"""

from collections.abc import Callable

import jax
from jax import numpy as jnp

from pfbr.particles.particles import Particles, equally_weighted, ess, normalise
from pfbr.particles.resampling import resample
from pfbr.particles.tempering_share import tempering_share
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Key, PerParticle, Points, Scalar

MAX_TEMPERATURES = 24
SHORTEST = 1e-6  # rise of temperature
LogDensity = Callable[[Points], PerParticle]


def temper(
    key: Key, prior: Particles, log_prior: LogDensity, log_likelihood: LogDensity, *, moves: int = 6
) -> tuple[Particles, Scalar]:
    """Equally weighted particles of ∝ prior × likelihood, with their log density, and the log evidence.

    `prior` are (weighted) draws of the density exp(`log_prior`), normalised or not; the log density that comes back is
    log prior + log likelihood − log evidence.
    """

    def going_on(carry):
        _, _, temperature, _, rung = carry
        return (temperature < 1.0) & (rung < MAX_TEMPERATURES)

    def climb(carry):
        key, particles, temperature, log_evidence, rung = carry
        key, resample_key, move_key = jax.random.split(key, 3)
        values = log_likelihood(particles.points)
        last = rung == MAX_TEMPERATURES - 1
        left = 1.0 - temperature
        half = 0.5 * ess(particles.log_weights)
        step = tempering_share(particles.log_weights, values, left, half, shortest=SHORTEST)
        step = jnp.where(last, left, step)
        log_weights = particles.log_weights + jnp.where(step > 0, step * values, 0.0)
        log_evidence += jax.nn.logsumexp(log_weights)
        temperature = jnp.where(step >= left, 1.0, temperature + step)
        kept = resample(resample_key, Particles(particles.points, normalise(log_weights)), "systematic")

        def log_target(points):
            return log_prior(points) + temperature * log_likelihood(points)

        points = walk(move_key, kept.points, log_target, moves)
        return key, equally_weighted(points), temperature, log_evidence, rung + 1

    start = Particles(prior.points, prior.log_weights)
    zero = jnp.zeros((), prior.points.dtype)
    _, particles, _, log_evidence, _ = jax.lax.while_loop(going_on, climb, (key, start, zero, zero, 0))
    points = particles.points
    density = log_prior(points) + log_likelihood(points) - log_evidence
    return Particles(points, particles.log_weights, density), log_evidence


def walk(key: Key, points: Points, log_target: LogDensity, moves: int) -> Points:
    """`moves` Metropolis–Hastings steps of every point: from a Gaussian fitted to the set, and at random, in turn."""
    n, d = points.shape
    frame = whitening_of(points)

    def move(carry, inputs):
        points, current = carry
        index, move_key = inputs
        noise_key, accept_key = jax.random.split(move_key)
        noise = jax.random.normal(noise_key, (n, d), points.dtype)
        independent = index % 2 == 0
        proposed = jnp.where(independent, frame.restore(noise), points + 2.38 / jnp.sqrt(d) * frame.vectors(noise))
        value = log_target(proposed)
        fitted = 0.5 * (jnp.sum(noise**2, -1) - jnp.sum(frame.whiten(points) ** 2, -1))
        log_ratio = value - current + jnp.where(independent, fitted, 0.0)
        accept = jnp.log(jax.random.uniform(accept_key, (n,), points.dtype)) < log_ratio
        return (jnp.where(accept[:, None], proposed, points), jnp.where(accept, value, current)), None

    inputs = (jnp.arange(moves), jax.random.split(key, moves))
    return jax.lax.scan(move, (points, log_target(points)), inputs)[0][0]
