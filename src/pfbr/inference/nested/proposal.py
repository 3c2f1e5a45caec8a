"""Where new parameters are drawn from: the Gaussian of a weighted cloud, a little wider, with a wide one beside it."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.particles.particles import ess, normalise
from pfbr.particles.qmc import MAX_SOBOL_DIM, sobol_normal
from pfbr.particles.whitening import Whitening, whitening_of
from pfbr.typing import Key, PerParticle, Points

NEAR, WIDE = 1.1, 2.0  # standard deviations of the two, in those of the cloud
EVERY = 8  # one draw in so many is a wide one: weights stay bounded where the cloud was too narrow
SHARE = 0.3  # of the particles, that has to count for the Gaussian: weights are flattened until it does


class Proposal(eqx.Module):
    frame: Whitening

    def draw(self, key: Key, num: int) -> Points:
        """Even draws, of both Gaussians in their shares."""
        dim = self.frame.mean.shape[0]
        even = dim < MAX_SOBOL_DIM
        normals = sobol_normal(key, num, dim + 1) if even else jax.random.normal(key, (num, dim + 1))
        # by a coordinate of their own: every eighth point of Sobol's sequence would lie in one corner
        wide = normals[:, dim] > jax.scipy.special.ndtri(1 - 1 / EVERY)
        return self.frame.restore(jnp.where(wide, WIDE, NEAR)[:, None] * normals[:, :dim])

    def log_density(self, thetas: Points) -> PerParticle:
        whitened = self.frame.whiten(thetas)
        dim = thetas.shape[1]
        square = jnp.sum(whitened**2, axis=1)
        near = jnp.log(1 - 1 / EVERY) - 0.5 * square / NEAR**2 - dim * jnp.log(NEAR)
        wide = jnp.log(1 / EVERY) - 0.5 * square / WIDE**2 - dim * jnp.log(WIDE)
        return jnp.logaddexp(near, wide) - 0.5 * dim * jnp.log(2 * jnp.pi) - self.frame.log_det


def proposal_of(thetas: Points, log_weights: PerParticle) -> Proposal:
    """The Gaussian of a cloud, its weights flattened as far as is needed for enough of it to count."""
    floor = SHARE * thetas.shape[0]
    log_weights = jnp.where(jnp.isnan(log_weights), -jnp.inf, log_weights)
    log_weights = log_weights - jnp.max(log_weights)
    finite = jnp.maximum(log_weights, -1e4)  # 0 · inf is none

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        enough = ess(middle * finite) >= floor
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    flat, _ = jax.lax.fori_loop(0, 20, halve, (jnp.zeros((), thetas.dtype), jnp.ones((), thetas.dtype)))
    power = jnp.where(ess(finite) >= floor, 1.0, flat)
    return Proposal(whitening_of(thetas, jnp.exp(normalise(power * finite))))
