"""Priors other than a model's own: a kernel estimate of particles, and mixtures drawn from a Dirichlet process."""

from abc import abstractmethod

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.models.base import Model
from pfbr.particles.density import kde_log_density, kde_sample, silverman
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, Point, Points, Scalar


class Prior(eqx.Module):
    """Something to draw an unknown from, with its density."""

    @abstractmethod
    def sample(self, key: Key) -> Point: ...

    @abstractmethod
    def log_density(self, x: Point) -> Scalar: ...


class KernelPrior(Prior):
    """The kernel density estimate of a set of particles: how a posterior becomes the next task's prior."""

    particles: Particles
    bandwidth: Float[Array, " d"]

    def sample(self, key: Key) -> Point:
        return kde_sample(key, self.particles, self.bandwidth, 1)[0]

    def log_density(self, x: Point) -> Scalar:
        return kde_log_density(self.particles, self.bandwidth, x[None])[0]


def kernel_prior(points: Points) -> KernelPrior:
    particles = equally_weighted(points)
    return KernelPrior(particles, silverman(particles))


class MixturePrior(Prior):
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
        unscales = jax.scipy.linalg.solve_triangular(self.scales, eye, lower=True)
        z = jnp.einsum("cij,cj->ci", unscales, x - self.means)
        log_det = jnp.sum(jnp.log(jnp.diagonal(self.scales, axis1=1, axis2=2)), axis=1)
        constant = log_det + 0.5 * x.shape[0] * jnp.log(2 * jnp.pi)
        return jax.nn.logsumexp(self.log_weights - 0.5 * jnp.sum(z**2, axis=1) - constant)


class DirichletProcess(eqx.Module):
    """A law over mixtures: sticks broken with Beta(1, concentration), cut off after `components` pieces.

    Each component has a mean from N(0, spread²) and a covariance with random axes, whose standard deviations are
    log-normal about `width`. A small concentration gives priors close to one Gaussian, a large one many lumps.
    """

    dim: int = eqx.field(static=True)
    concentration: float = 1.0
    components: int = eqx.field(static=True, default=6)
    spread: float = 1.0
    width: float = 0.5

    def sample(self, key: Key) -> MixturePrior:
        sticks, centres, axes, stds = jax.random.split(key, 4)
        broken = jax.random.beta(sticks, 1.0, self.concentration, (self.components,))
        broken = broken.at[-1].set(1.0)  # the last piece takes what is left, so that the weights sum to one
        log_left = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.log1p(-broken[:-1]))])
        means = self.spread * jax.random.normal(centres, (self.components, self.dim))
        shape = (self.components, self.dim, self.dim)
        rotations, _ = jnp.linalg.qr(jax.random.normal(axes, shape))
        std = self.width * jnp.exp(0.5 * jax.random.normal(stds, shape[:2]))
        covs = jnp.einsum("cij,cj,ckj->cik", rotations, std**2, rotations)
        return MixturePrior(jnp.log(broken) + log_left, means, jnp.linalg.cholesky(covs))


class PriorReplaced(Model):
    """A model without dynamics whose prior is another one."""

    model: Model
    prior: Prior

    @property
    def dim(self) -> int:
        return self.model.dim

    def sample_prior(self, key: Key) -> Point:
        return self.prior.sample(key)

    def log_prior(self, x: Point) -> Scalar:
        return self.prior.log_density(x)

    def log_likelihood(self, x: Point, observation: Observation) -> Scalar:
        return self.model.log_likelihood(x, observation)

    def sample_observation(self, key: Key, x: Point) -> Observation:
        return self.model.sample_observation(key, x)
