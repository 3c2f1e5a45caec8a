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
