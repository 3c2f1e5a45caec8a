"""A density from particles: Gaussian kernels with Silverman's bandwidth."""

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.particles.particles import Particles, ess, weighted_cov
from pfbr.typing import Key, PerParticle, Points


def silverman(particles: Particles) -> Float[Array, " d"]:
    """h_j = s_j (4 / (d + 2))^{1/(d+4)} N^{-1/(d+4)}, N the effective number of particles."""
    d = particles.points.shape[-1]
    std = jnp.sqrt(jnp.maximum(jnp.diagonal(weighted_cov(particles)), 1e-12))
    return std * (4.0 / (d + 2)) ** (1.0 / (d + 4)) * ess(particles.log_weights) ** (-1.0 / (d + 4))


def squared_distances(a: Points, b: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """‖a_i − b_j‖² by one matrix product, about a common centre so that float32 keeps its digits."""
    centre = jnp.mean(b, axis=0)
    a, b = a - centre, b - centre
    return jnp.maximum(jnp.sum(a**2, -1)[:, None] + jnp.sum(b**2, -1)[None, :] - 2 * a @ b.T, 0.0)


def kde_log_density(particles: Particles, bandwidth: Float[Array, " d"], at: Points) -> PerParticle:
    """log Σ_n w_n N(x; x_n, diag(bandwidth²)) at each row of `at`."""
    d = at.shape[-1]
    exponent = -0.5 * squared_distances(at / bandwidth, particles.points / bandwidth)
    constant = jnp.sum(jnp.log(bandwidth)) + 0.5 * d * jnp.log(2 * jnp.pi)
    return jax.nn.logsumexp(exponent + particles.log_weights, axis=1) - constant


def kde_sample(key: Key, particles: Particles, bandwidth: Float[Array, " d"], num: int) -> Points:
    """Draws from the kernel density estimate."""
    which_key, noise_key = jax.random.split(key)
    which = jax.random.categorical(which_key, particles.log_weights, shape=(num,))
    noise = jax.random.normal(noise_key, (num, particles.points.shape[-1]))
    return particles.points[which] + bandwidth * noise
