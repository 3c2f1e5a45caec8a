"""Priors other than a model's own: mixtures drawn from a Dirichlet process, and a model with its prior replaced."""

from typing import Any

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.models.base import Model
from pfbr.models.unknowns import Unknowns
from pfbr.particles.mixtures import Distribution, MixtureOfGaussians
from pfbr.typing import Key, Observation, Point, Real, Scalar


class DirichletProcess(eqx.Module):
    """A law over mixtures: sticks broken with Beta(1, concentration), cut off after `components` pieces.

    Each component has a mean from N(0, spread²) and a covariance with random axes, whose standard deviations are
    log-normal about `width`. A small concentration gives priors close to one Gaussian, a large one many lumps.
    """

    dim: int = eqx.field(static=True)
    concentration: Real = 1.0
    components: int = eqx.field(static=True, default=6)
    spread: Real = 1.0
    width: Real = 0.5

    def sample(self, key: Key) -> MixtureOfGaussians:
        sticks, centres, axes, stds = jax.random.split(key, 4)
        broken = jax.random.beta(sticks, 1.0, self.concentration, (self.components,))
        broken = broken.at[-1].set(1.0)  # the last piece takes what is left, so that the weights sum to one
        log_left = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.log1p(-broken[:-1]))])
        means = self.spread * jax.random.normal(centres, (self.components, self.dim))
        shape = (self.components, self.dim, self.dim)
        rotations, _ = jnp.linalg.qr(jax.random.normal(axes, shape))
        std = self.width * jnp.exp(0.5 * jax.random.normal(stds, shape[:2]))
        covs = jnp.einsum("cij,cj,ckj->cik", rotations, std**2, rotations)
        return MixtureOfGaussians(jnp.log(broken) + log_left, means, jnp.linalg.cholesky(covs))


class PriorReplaced(Model):
    """A model without dynamics whose prior is another distribution, of its free numbers."""

    model: Model
    prior: Distribution

    @property
    def dim(self) -> int:
        return self.model.dim

    def sample_prior(self, key: Key) -> Point:
        return self.prior.sample(key)

    def log_prior(self, x: Point) -> Scalar:
        return self.prior.log_density(x)

    def log_likelihood(self, x: Point, observation: Observation, **given: Any) -> Scalar:
        unknowns = Unknowns.of(self.model)
        own: Any = x if unknowns is None else unknowns.constrain(x)
        return self.model.log_likelihood(own, observation, **given)

    def sample_observation(self, key: Key, x: Point, **given: Any) -> Observation:
        unknowns = Unknowns.of(self.model)
        own: Any = x if unknowns is None else unknowns.constrain(x)
        return self.model.sample_observation(key, own, **given)

    def sample_inputs(self, key: Key) -> Any:
        return self.model.sample_inputs(key)
