"""Importance weights: effective sample size, Pareto k-hat, systematic resampling, and the tempering step that fits."""

import jax
from jax import Array
from jax import numpy as jnp


def uniform_log_weights(n: int, dtype) -> Array:
    return jnp.full(n, -jnp.log(n), dtype)


def clean(log_weights: Array) -> Array:
    """NaN and +inf are no weights: a particle where the model breaks down is left out."""
    return jnp.where(jnp.isnan(log_weights) | (log_weights == jnp.inf), -jnp.inf, log_weights)


def ess(log_weights: Array) -> Array:
    """Effective sample size of unnormalised log weights; 0 where there is no weight at all."""
    scaled = jnp.exp(log_weights - jnp.maximum(jnp.max(log_weights), jnp.finfo(log_weights.dtype).min))
    square = jnp.sum(scaled**2)
    return jnp.where(square > 0, jnp.sum(scaled) ** 2 / jnp.where(square > 0, square, 1), 0)


def normalise(log_weights: Array) -> tuple[Array, Array]:
    """Normalised log weights, and the log of their sum."""
    total = jax.nn.logsumexp(log_weights)
    return log_weights - jnp.where(jnp.isfinite(total), total, 0), total


def systematic(key: Array, log_weights: Array) -> Array:
    """Indices of equally weighted survivors; one uniform number for all of them keeps the variance low."""
    n = log_weights.shape[0]
    cumulative = jnp.cumsum(jax.nn.softmax(log_weights))
    at = (jnp.arange(n, dtype=cumulative.dtype) + jax.random.uniform(key, dtype=cumulative.dtype)) / n
    # divided by the last entry: rounding must not leave the last particles to chance
    return jnp.searchsorted(cumulative / cumulative[-1], at).clip(0, n - 1)


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


def pareto_k(log_weights: Array) -> Array:
    """Shape of the generalised Pareto tail of the weights (Zhang and Stephens 2009, with the prior of PSIS)."""
    n = log_weights.shape[0]
    m = max(5, int(min(0.2 * n, 3 * n**0.5)))
    top = jax.lax.top_k(log_weights, m + 1)[0]
    scaled = jnp.exp(top - jnp.where(jnp.isfinite(top[0]), top[0], 0))
    x = (scaled[:m] - scaled[m])[::-1]  # exceedances, ascending
    grid = 20 + int(m**0.5)
    quarter, largest = x[int(m / 4 + 0.5) - 1], x[-1]
    defined = (quarter > 0) & (largest > 0)
    quarter, largest = jnp.where(defined, quarter, 1), jnp.where(defined, largest, 1)
    i = jnp.arange(1, grid + 1, dtype=x.dtype)
    theta = 1 / largest + (1 - jnp.sqrt(grid / (i - 0.5))) / (3 * quarter)
    inner = jnp.log1p(-jnp.clip(theta[:, None] * x[None], None, 1 - jnp.finfo(x.dtype).eps))
    k = jnp.mean(inner, axis=1)
    score = m * (jnp.log(jnp.where(k == 0, 1, -theta / jnp.where(k == 0, 1, k))) - k - 1)
    b = jnp.sum(jax.nn.softmax(jnp.where(jnp.isfinite(score), score, -jnp.inf)) * theta)
    k_hat = jnp.mean(jnp.log1p(-jnp.clip(b * x, None, 1 - jnp.finfo(x.dtype).eps)))
    k_hat = (k_hat * m + 5.0) / (m + 10)  # weakly drawn to 0.5
    return jnp.where(defined, k_hat, jnp.where(scaled[0] > 0, 0.0, jnp.inf)).astype(x.dtype)
