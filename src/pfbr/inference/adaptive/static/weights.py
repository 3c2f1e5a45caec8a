"""Log weights that may be −inf, NaN or none at all."""

import jax
from jax import Array
from jax import numpy as jnp


def uniform_log_weights(n: int, dtype) -> Array:
    return jnp.full(n, -jnp.log(n), dtype)


def clean(log_weights: Array) -> Array:
    """NaN and +inf are no weights: a particle where the model breaks down is left out."""
    return jnp.where(jnp.isnan(log_weights) | (log_weights == jnp.inf), -jnp.inf, log_weights)


def normalise(log_weights: Array) -> tuple[Array, Array]:
    """Normalised log weights, and the log of their sum."""
    total = jax.nn.logsumexp(log_weights)
    return log_weights - jnp.where(jnp.isfinite(total), total, 0), total


def weighed_up(log_weights: Array) -> tuple[Array, Array, Array]:
    """Normalised log weights, the log of their sum, and the effective sample size, in one pass: every row needs it."""
    top = jnp.max(log_weights)
    top = jnp.where(jnp.isfinite(top), top, 0)
    weights = jnp.exp(log_weights - top)
    sums = jnp.sum(jnp.stack([weights, weights**2]), axis=1)
    total = top + jnp.log(sums[0])
    left = jnp.where(sums[0] > 0, sums[0] ** 2 / jnp.where(sums[1] > 0, sums[1], 1), 0)
    return log_weights - jnp.where(jnp.isfinite(total), total, 0), total, left
