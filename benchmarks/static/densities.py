"""Densities that several problems share."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.models.base import normal_log_densities as normal

__all__ = ["log_half_normal", "moments_of_mixture", "normal", "sample_log_half_normal"]


def log_half_normal(log_sd, scale):
    """Density of log_sd where exp(log_sd) is half-normal with this scale."""
    return 0.5 * jnp.log(2 / jnp.pi) - jnp.log(scale) - 0.5 * (jnp.exp(log_sd) / scale) ** 2 + log_sd


def sample_log_half_normal(key, scale):
    return jnp.log(scale * jnp.abs(jax.random.normal(key)))


def moments_of_mixture(weights: np.ndarray, means: np.ndarray, covs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a weighted mixture of Gaussians."""
    mean = weights @ means
    centred = means - mean
    return mean, np.einsum("k,kij->ij", weights, covs) + np.einsum("k,ki,kj->ij", weights, centred, centred)
