"""The density of a cloud after the dynamics: a mixture of transitions, made as smooth as the cloud itself asks for.

The plain mixture Σ_j W_j p(x | x_j) is unbiased, but in ten dimensions a few hundred kernels are a lumpy picture of a
smooth law. Each transition is therefore drawn towards the common mean and widened, so that mean and covariance stay
what they were (West 1993): from the plain mixture, h = 0, to the one Gaussian with these moments, h = 1. How far is
decided by the cloud: the largest h under which the predicted particles, each given all the others, are as likely as
under any other, to a standard error. A Gaussian cloud chooses 1, two modes apart choose little. With more particles the
plain mixture wins wherever the law is not exactly in the family, so that a filter built on it stays consistent.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.models.base import StateSpaceModel, offers
from pfbr.particles.density import kde_log_density, silverman, squared_distances
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Matrix, PerParticle, Point, Points, Scalar

MIXTURE_COMPONENTS = 2048  # beyond this an evenly chosen subset of the transitions estimates the density as well
WIDTHS = (0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0)  # h, from the plain mixture to one Gaussian
MAX_JUDGES = 512  # predicted particles that decide on h: enough to know it, and n² would be slow for thousands


class Predictive(eqx.Module):
    """Σ_j W_j p(x | x_j), plain; the model is asked for every pair."""

    model: StateSpaceModel
    before: Particles

    def log_density(self, at: Points, *, equal: bool = False) -> PerParticle:
        """`equal`: the mixture with equal weights, from which one draw of each transition comes."""
        weights = equally_weighted(self.before.points).log_weights if equal else self.before.log_weights
        pairwise = jax.vmap(jax.vmap(self.model.log_transition, (None, 0)), (0, None))
        return jax.nn.logsumexp(pairwise(at, self.before.points) + weights, axis=1)


class GaussianPredictive(eqx.Module):
    """Σ_j W_j N(x; m_j, scale scaleᵀ): kernels alike, at the means of the transitions."""

    means: Points
    log_weights: PerParticle
    scale: Matrix

    def log_density(self, at: Points, *, equal: bool = False) -> PerParticle:
        weights = equally_weighted(self.means).log_weights if equal else self.log_weights
        exponents, constant = self.exponents(at)
        return jax.nn.logsumexp(exponents + weights, axis=1) + constant

    def exponents(self, at: Points):
        """log N(x_i; m_j, scale scaleᵀ) without its constant, for every pair; and the constant."""
        d = at.shape[1]
        inverse_scale = jax.scipy.linalg.solve_triangular(self.scale, jnp.eye(d, dtype=at.dtype), lower=True)
        constant = -jnp.sum(jnp.log(jnp.diagonal(self.scale))) - 0.5 * d * jnp.log(2 * jnp.pi)
        return -0.5 * squared_distances(at @ inverse_scale.T, self.means @ inverse_scale.T), constant

    def from_normal(self, noise: Points) -> Points:
        """One draw from each kernel."""
        return self.means + noise @ self.scale.T


def plain(model: StateSpaceModel, before: Particles) -> Predictive | GaussianPredictive:
    """The unbiased mixture, h = 0."""
    if not offers(model, "transition_mean_and_std"):
        return Predictive(model, before)
    means, stds = jax.vmap(model.transition_mean_and_std)(before.points)
    return GaussianPredictive(means, before.log_weights, jnp.diag(stds[0]))


def smoothed(model: StateSpaceModel, before: Particles, predicted: Points) -> Predictive | GaussianPredictive:
    """The mixture with the h that `predicted`, one draw from each transition, prefers; plain where the transition is
    not normal with the same noise everywhere."""
    raw = plain(model, before)
    if isinstance(raw, Predictive):
        return raw
    weights = jnp.exp(raw.log_weights)
    mean = weights @ raw.means
    centred = raw.means - mean
    spread = (centred * weights[:, None]).T @ centred
    judges = jnp.arange(min(predicted.shape[0], MAX_JUDGES))

    def at_width(width):
        return _widened(raw, mean, spread, width)

    def score(width):
        exponents, constant = at_width(width).exponents(predicted[judges])
        others = jnp.where(judges[:, None] == jnp.arange(raw.means.shape[0])[None], -jnp.inf, raw.log_weights)
        # without its own kernel, the rest of the weights must sum to one again
        left = jnp.log1p(-jnp.minimum(weights[judges], 1 - 1e-6))
        likely = jax.nn.logsumexp(exponents + others, axis=1) + constant - left
        return jnp.maximum(likely, -1e4)

    widths = jnp.asarray(WIDTHS, predicted.dtype)
    scores = jax.lax.map(score, widths)  # (widths, judges)
    share = weights[judges] / jnp.sum(weights[judges])
    behind = scores[jnp.argmax(scores @ share)] - scores
    loss = behind @ share
    error = jnp.sqrt(((behind - loss[:, None]) ** 2) @ share**2)
    # the smoothest that is as good as the best: what a few hundred particles cannot tell apart is not to be lumpy
    return at_width(jnp.max(jnp.where(loss <= error, widths, 0.0)))


def _widened(raw: GaussianPredictive, mean: Point, spread: Matrix, width: Scalar) -> GaussianPredictive:
    """Kernels drawn towards the mean by √(1 − h²) and widened by h² of the spread: mean and covariance are kept."""
    means = mean + jnp.sqrt(1 - width**2) * (raw.means - mean)
    return GaussianPredictive(means, raw.log_weights, jnp.linalg.cholesky(raw.scale @ raw.scale.T + width**2 * spread))


def predictive_log_density(
    model: StateSpaceModel, before: Points, predicted: Points, at: Float[Array, "m d"], *, how: str = "mixture"
) -> Float[Array, " m"]:
    """log p(x_m | o_1 … o_{m−1}) at the rows of `at`, from the particles `before` the transition and `predicted` by it.

    The mixture 1/N Σ_n p(x | x_{m−1}^n) is the law the moved particles were drawn from; in ten dimensions it is far
    better than a kernel estimate, which is here for models whose transition density is unknown.
    """
    if how == "kde" or not offers(model, "log_transition"):
        cloud = equally_weighted(predicted)
        return kde_log_density(cloud, silverman(cloud), at)
    components = before[:: max(1, before.shape[0] // MIXTURE_COMPONENTS)]
    return plain(model, equally_weighted(components)).log_density(at)
