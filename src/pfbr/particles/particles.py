"""Points, their weights, and the log density of the law they were drawn from."""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.typing import PerParticle, Points, Scalar


class Particles(eqx.Module):
    """n points in R^d.

    `log_weights` are normalised (their exponentials sum to one). `log_density` is log q(x) of each point under
    the distribution it was moved to, or None for a method that does not know it. `scores`: about its gradients, where
    a method needs them.
    """

    points: Points
    log_weights: PerParticle
    log_density: PerParticle | None = None
    scores: Points | None = None

    @property
    def num_particles(self) -> int:
        return self.points.shape[-2]


def equally_weighted(points: Points, log_density: PerParticle | None = None, scores: Points | None = None) -> Particles:
    """Particles that all count the same."""
    n = points.shape[-2]
    return Particles(points, jnp.full(points.shape[:-1], -jnp.log(float(n)), points.dtype), log_density, scores)


def normalise(log_weights: PerParticle) -> PerParticle:
    """Log weights shifted so that the weights sum to one."""
    return log_weights - jax.nn.logsumexp(log_weights, axis=-1, keepdims=True)


def weighted_mean(particles: Particles):
    """Σ w_n x_n."""
    return jnp.einsum("...n,...nd->...d", jnp.exp(particles.log_weights), particles.points)


def weighted_cov(particles: Particles):
    """Covariance under the weights; with equal weights, the unbiased one (divided by n - 1)."""
    w = jnp.exp(particles.log_weights)
    centred = particles.points - weighted_mean(particles)[..., None, :]
    spread = jnp.einsum("...n,...ni,...nj->...ij", w, centred, centred)
    return spread / jnp.maximum(1.0 - jnp.sum(w**2, axis=-1), 1e-12)[..., None, None]


def ess(log_weights: PerParticle):
    """Effective sample size, (Σ w)² / Σ w², of log weights, normalised or not; 0 where there is no weight at all."""
    top = jnp.max(log_weights, axis=-1, keepdims=True)
    weights = jnp.exp(log_weights - jnp.maximum(top, jnp.finfo(log_weights.dtype).min))
    square = jnp.sum(weights**2, axis=-1)
    return jnp.where(square > 0, jnp.sum(weights, axis=-1) ** 2 / jnp.where(square > 0, square, 1.0), 0.0)


def ess_share(log_weights: PerParticle) -> Scalar:
    """The effective sample size over the number of particles; what is not finite counts for nothing."""
    log_weights = jnp.where(jnp.isfinite(log_weights), log_weights, -jnp.inf)
    share = ess(log_weights) / log_weights.shape[0]
    return jnp.where(jnp.isfinite(share), share, 0.0)
