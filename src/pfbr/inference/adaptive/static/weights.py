"""Log weights that may be −inf, NaN or none at all, and the tempering step that fits."""

import jax
from jax import Array
from jax import numpy as jnp

from pfbr.particles.particles import ess


def uniform_log_weights(n: int, dtype) -> Array:
    return jnp.full(n, -jnp.log(n), dtype)


def clean(log_weights: Array) -> Array:
    """NaN and +inf are no weights: a particle where the model breaks down is left out."""
    return jnp.where(jnp.isnan(log_weights) | (log_weights == jnp.inf), -jnp.inf, log_weights)


def normalise(log_weights: Array) -> tuple[Array, Array]:
    """Normalised log weights, and the log of their sum."""
    total = jax.nn.logsumexp(log_weights)
    return log_weights - jnp.where(jnp.isfinite(total), total, 0), total


def tempering_share(log_weights: Array, log_likelihood: Array, left: Array, least: Array) -> Array:
    """The largest share ≤ left of the likelihood that keeps the ESS at `least`, by bisection in the logarithm.

    In the logarithm because under vague priors the first share may be 1e-8. Never 0, so that tempering ends.
    """
    tiny = jnp.asarray(1e-10, log_weights.dtype)

    def enough(share):
        return ess(clean(log_weights + share * log_likelihood)) >= least

    def halve(_, bounds):
        low, high = bounds
        middle = jnp.sqrt(low * high)
        fine = enough(middle)
        return jnp.where(fine, middle, low), jnp.where(fine, high, middle)

    low, _ = jax.lax.fori_loop(0, 24, halve, (jnp.minimum(tiny, left), left))
    return jnp.where(enough(left), left, low)
