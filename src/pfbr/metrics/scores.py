"""How far particles are from the truth; arrays in, number out, with its Monte Carlo error."""

from typing import NamedTuple

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.particles.density import kde_log_density, silverman
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Points, Scalar


class Estimate(NamedTuple):
    """A number and the standard error that comes from using finitely many draws."""

    value: Scalar
    error: Scalar


def cross_entropy(particles: Particles, truth_draws: Points) -> Scalar:
    """E_{x ~ truth}[−log q(x)], q the kernel density estimate of the particles; lower is better.

    Read it beside the score of as many exact draws: the difference is what the method loses.
    """
    return cross_entropy_estimate(particles, truth_draws).value


def cross_entropy_estimate(particles: Particles, truth_draws: Points) -> Estimate:
    """`cross_entropy`, and the error from the number of true draws (the particles are taken as given)."""
    return mean_of(-kde_log_density(particles, silverman(particles), truth_draws))


def mean_error(particles: Particles, truth_mean: Float[Array, " d"]) -> Scalar:
    """Euclidean distance between the particles' mean and the true one."""
    weights = jnp.exp(particles.log_weights)
    return jnp.linalg.norm(weights @ particles.points - truth_mean)


def mean_of(values: Float[Array, " m"]) -> Estimate:
    """The mean of independent values."""
    return Estimate(jnp.mean(values), jnp.std(values, ddof=1) / jnp.sqrt(values.shape[0]))


def coverage(particles: Particles, truth_draws: Points, level: float = 0.9) -> Estimate:
    """Share of true draws inside the central interval of the particles, averaged over dimensions; `level` is ideal."""
    if not 0.0 < level < 1.0:
        raise InputError(f"`level` is the probability of the interval, between 0 and 1; got {level}.")
    edges = jnp.array([0.5 - level / 2, 0.5 + level / 2])

    def one_dimension(column, truth):
        lower, upper = weighted_quantiles(column, jnp.exp(particles.log_weights), edges)
        return (truth >= lower) & (truth <= upper)

    inside = jax.vmap(one_dimension, (1, 1), 1)(particles.points, truth_draws)
    return mean_of(jnp.mean(inside.astype(truth_draws.dtype), axis=1))


def weighted_quantiles(values: Float[Array, " n"], weights: Float[Array, " n"], at: Float[Array, " q"]):
    """Quantiles by linear interpolation between the middles of the weights (Hazen's rule when they are equal)."""
    order = jnp.argsort(values)
    values, weights = values[order], weights[order]
    middles = jnp.cumsum(weights) - 0.5 * weights
    return jnp.interp(at, middles / jnp.sum(weights), values)


def sliced_wasserstein(key: Key, particles: Particles, truth_draws: Points, *, directions: int = 64) -> Estimate:
    """The 1-Wasserstein distance of projections, averaged over random directions (Rabin et al. 2011)."""
    towards = jax.random.normal(key, (directions, truth_draws.shape[1]))
    towards = towards / jnp.linalg.norm(towards, axis=1, keepdims=True)

    def along(direction):
        return wasserstein_1d(particles.points @ direction, jnp.exp(particles.log_weights), truth_draws @ direction)

    return mean_of(jax.lax.map(along, towards))


def wasserstein_1d(a: Float[Array, " n"], a_weights: Float[Array, " n"], b: Float[Array, " m"]) -> Scalar:
    """∫ |F_a − F_b| over the line, for weighted a and equally weighted b."""
    both = jnp.concatenate([a, b])
    steps = jnp.concatenate([a_weights, jnp.full(b.shape, -1.0 / b.shape[0])])
    order = jnp.argsort(both)
    difference = jnp.cumsum(steps[order])[:-1]
    return jnp.sum(jnp.abs(difference) * jnp.diff(both[order]))
