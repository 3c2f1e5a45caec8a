"""The outer cloud: parameters, each with a filter of its own."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.inference.nested.inner import Clouds, InnerFilters, Seeds, unravel
from pfbr.inference.nested.kept import KeptRows
from pfbr.typing import Key, PerParticle, Points, Scalar


class OuterCloud(eqx.Module):
    """Flat parameters (N, p), the seeds and particles of their filters, weights, log likelihoods of the rows kept
    relative to their references, and a number below 2 N that those of one origin share."""

    thetas: Points
    seeds: Seeds
    filters: Clouds
    log_weights: PerParticle
    log_past: PerParticle
    origin: Int[Array, " n"]

    @property
    def independent(self) -> Scalar:
        """How many independent draws the parameters are worth: those of one origin count as one."""
        together = jnp.zeros(2 * self.origin.shape[0], self.log_weights.dtype)
        return 1.0 / jnp.sum(together.at[self.origin].add(jnp.exp(self.log_weights)) ** 2)


def fresh_seeds(key: Key, num: int) -> Seeds:
    return jax.random.bits(key, (num, 2), jnp.uint32)


def log_start(filters: InnerFilters, kept: KeptRows, thetas: Points) -> PerParticle:
    """Log density of the parameters before the first row kept."""
    log_prior = filters.model.log_parameters
    shaped = unravel(filters.model)
    prior = jax.vmap(lambda theta: jnp.sum(jnp.asarray(log_prior(shaped(theta)))))(thetas)
    value = jnp.where(kept.start.in_use, kept.start.log_density(thetas), prior)
    return jnp.where(jnp.isnan(value), -jnp.inf, value)
