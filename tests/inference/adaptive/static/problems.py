"""Small targets with known answers, for one point and one row (a number), that the tests of this folder share."""

import jax
from jax import numpy as jnp

from pfbr.inference.adaptive.static.target import Target


def linear_gaussian(prior_std: float = 2.0, noise_std: float = 0.5) -> Target:
    """x ~ N(0, prior_std² I) in the plane; a row (a, y) is y = a · x + noise."""

    def log_prior(x):
        return -0.5 * jnp.sum((x / prior_std) ** 2) - 2 * jnp.log(prior_std) - jnp.log(2 * jnp.pi)

    def log_likelihood(x, row):
        z = (row[2] - row[:2] @ x) / noise_std
        return -0.5 * z**2 - jnp.log(noise_std) - 0.5 * jnp.log(2 * jnp.pi)

    return Target(log_prior, log_likelihood)


def kalman(rows, prior_std: float = 2.0, noise_std: float = 0.5):
    """Mean, covariance and log evidence after each row, by the formula."""
    mean, cov, evidence, out = jnp.zeros(2), prior_std**2 * jnp.eye(2), 0.0, []
    for row in rows:
        a, y = row[:2], row[2]
        variance = a @ cov @ a + noise_std**2
        evidence += -0.5 * (y - a @ mean) ** 2 / variance - 0.5 * jnp.log(2 * jnp.pi * variance)
        gain = cov @ a / variance
        mean, cov = mean + gain * (y - a @ mean), cov - jnp.outer(gain, a @ cov)
        out.append((mean, cov, evidence))
    return out


def banana() -> Target:
    """x ~ N(0, I) in the plane, y ~ N(x0 + x1², 0.5): bent, so that no closed form is taken. y > 100 is impossible."""

    def log_likelihood(x, row):
        return jnp.where(row[0] > 100, -jnp.inf, -0.5 * ((row[0] - x[0] - x[1] ** 2) / 0.5) ** 2)

    return Target(lambda x: -0.5 * jnp.sum(x**2), log_likelihood)


def grid_moments(target: Target, rows, reach: float = 5.0, cells: int = 401):
    """Mean and covariance in the plane by brute force, and the log of the integral of prior times rows."""
    axis = jnp.linspace(-reach, reach, cells)
    points = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    value = jax.vmap(lambda x: target.log_prior(x) + sum(target.log_likelihood(x, r) for r in rows))(points)
    weights = jax.nn.softmax(value)
    mean = weights @ points
    centred = points - mean
    log_integral = jax.nn.logsumexp(value) + 2 * jnp.log(axis[1] - axis[0])
    return mean, (weights[:, None] * centred).T @ centred, log_integral
