"""How heavy is the tail of the weights: k-hat of a generalised Pareto law fitted to the largest of them.

The fit is that of Zhang and Stephens (2009), with the weak prior k ≈ 0.5 of Vehtari et al., "Pareto smoothed importance
sampling" (2024). Below 0.5 the weights have a variance; above 0.7 their averages cannot be relied on.
"""

import math

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.typing import PerParticle, Scalar

PRIOR_COUNT, PRIOR_K = 10, 0.5  # as if ten more exceedances had been seen, of a law with this k
FEWEST = 5  # exceedances that can be fitted
FLAT = 1e-4  # log weights that differ by less are equal: rounding makes as much of a difference


def tail_size(num: int) -> int:
    """How many of the largest weights count as the tail."""
    return math.ceil(min(num / 5, 3 * math.sqrt(num)))


def pareto_k(log_weights: PerParticle) -> Scalar:
    """k-hat of a set of log weights; infinite for sets that are too small to have a tail, 0 for equal weights."""
    size = tail_size(log_weights.shape[0])
    if size < FEWEST:
        return jnp.asarray(jnp.inf, log_weights.dtype)
    # only the tail is put in order: sorting all takes seven times as long, and without the barrier the compiler does
    top, _ = jax.lax.optimization_barrier(
        jax.lax.top_k(jnp.where(jnp.isnan(log_weights), -jnp.inf, log_weights), size + 1)
    )
    ordered = top[::-1]
    above = ordered[-size:] - ordered[-size - 1]
    # expm1 keeps the digits of nearly equal weights, and k does not depend on scale; beyond that it would overflow
    near = jnp.expm1(jnp.minimum(above, 1.0))
    far = jnp.exp(ordered[-size:] - ordered[-1]) - jnp.exp(ordered[-size - 1] - ordered[-1])
    exceed = jnp.where(above[-1] < 1.0, near, far)
    flat = above[-1] < FLAT
    k = fit_k(jnp.where(flat, jnp.arange(1.0, size + 1, dtype=exceed.dtype), exceed / jnp.where(flat, 1, exceed[-1])))
    return jnp.where(flat, 0.0, k)


def fit_k(exceed: Float[Array, " m"]) -> Scalar:
    """The shape k of a generalised Pareto law, from its exceedances in ascending order.

    The likelihood is profiled over b = −k/σ, which has one shape k(b) = mean log(1 − b x) each, and averaged over a
    grid of b that is denser where b is near its bound 1/max x.
    """
    m = exceed.shape[0]
    num = 30 + int(math.sqrt(m))
    quartile = jnp.maximum(exceed[int(m / 4 + 0.5) - 1], jnp.finfo(exceed.dtype).tiny * 1e6)
    spread = 1 - jnp.sqrt(num / (jnp.arange(1, num + 1, dtype=exceed.dtype) - 0.5))
    b = spread / (3 * quartile) + 1 / exceed[-1]
    k = jnp.mean(jnp.log1p(-b[:, None] * exceed), axis=1)
    profile = m * (jnp.log(-b / k) - k - 1)
    profile = jnp.where(jnp.isfinite(profile), profile, -jnp.inf)  # b = 0 is the exponential law, met by no grid point
    b_mean = jnp.sum(b * jax.nn.softmax(profile))
    k_mean = jnp.mean(jnp.log1p(-b_mean * exceed))
    return (m * k_mean + PRIOR_COUNT * PRIOR_K) / (m + PRIOR_COUNT)
