"""Distributions made of Gaussians: a kernel density estimate, and mixtures with a shape for each component."""

from abc import abstractmethod

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.particles.density import kde_log_density, kde_sample, silverman
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Point, Points, Scalar


class Distribution(eqx.Module):
    """Something to draw an unknown from, with its density."""

    @abstractmethod
    def sample(self, key: Key) -> Point: ...

    @abstractmethod
    def log_density(self, x: Point) -> Scalar: ...


class KernelDensity(Distribution):
    """The kernel density estimate of a set of particles: how a posterior becomes the next task's prior."""

    particles: Particles
    bandwidth: Float[Array, " d"]

    @classmethod
    def of(cls, points: Points) -> "KernelDensity":
        particles = equally_weighted(points)
        return cls(particles, silverman(particles))

    def sample(self, key: Key) -> Point:
        return kde_sample(key, self.particles, self.bandwidth, 1)[0]

    def log_density(self, x: Point) -> Scalar:
        return kde_log_density(self.particles, self.bandwidth, x[None])[0]


class MixtureOfGaussians(Distribution):
    """Σ_k w_k N(mean_k, scale_k scale_kᵀ)."""

    log_weights: Float[Array, " c"]
    means: Float[Array, "c d"]
    scales: Float[Array, "c d d"]  # lower triangular

    def sample(self, key: Key) -> Point:
        which_key, noise_key = jax.random.split(key)
        which = jax.random.categorical(which_key, self.log_weights)
        return self.means[which] + self.scales[which] @ jax.random.normal(noise_key, self.means.shape[1:])

    def log_density(self, x: Point) -> Scalar:
        # The inverses do not depend on x: under vmap over points they are computed once, and each point costs a
        # product and no triangular solve.
        eye = jnp.broadcast_to(jnp.eye(x.shape[0], dtype=x.dtype), self.scales.shape)
        inverse_scales = jax.scipy.linalg.solve_triangular(self.scales, eye, lower=True)
        z = jnp.einsum("cij,cj->ci", inverse_scales, x - self.means)
        log_det = jnp.sum(jnp.log(jnp.diagonal(self.scales, axis1=1, axis2=2)), axis=1)
        constant = log_det + 0.5 * x.shape[0] * jnp.log(2 * jnp.pi)
        return jax.nn.logsumexp(self.log_weights - 0.5 * jnp.sum(z**2, axis=1) - constant)
