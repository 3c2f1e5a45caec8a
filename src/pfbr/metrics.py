"""How far particles are from the truth; arrays in, number out."""

from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.kernels import kde_log_density, silverman
from pfbr.particles import Particles
from pfbr.shapes import Points, Scalar


def cross_entropy(particles: Particles, truth_draws: Points) -> Scalar:
    """E_{x ~ truth}[−log q(x)], q the kernel density estimate of the particles; lower is better.

    Read it beside the score of as many exact draws: the difference is what the method loses.
    """
    return -jnp.mean(kde_log_density(particles, silverman(particles), truth_draws))


def mean_error(particles: Particles, truth_mean: Float[Array, " d"]) -> Scalar:
    """Euclidean distance between the particles' mean and the true one."""
    weights = jnp.exp(particles.log_weights)
    return jnp.linalg.norm(weights @ particles.points - truth_mean)
