"""The velocity that satisfies the continuity equation on the particles themselves, found by least squares.

Between prior and posterior lie the densities q_t ∝ q_0 exp(t ℓ). A velocity carries particles along them if

    r = ∇·v + v · ∇ log q + ℓ − E ℓ

vanishes. v is a combination of fields, r is linear in its coefficients, and each particle that knows its own score
∇ log q gives one equation. What the fields cannot express is left over as r, which is just the rate at which the log
weight of a particle grows: the error of the velocity is not lost but turned into weights.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Bool, Float

from pfbr.flow.likelihood import Likelihood
from pfbr.inference.collocation.fields import Fields
from pfbr.particles.whitening import Whitening, whitening_of
from pfbr.typing import Matrix, PerParticle, Point, Points, Scalar

FOLDING = 0.4  # how much the fastest stretch counts beside the typical one: a step that folds space has no density
FIT_RIDGE = 0.01  # of a fit to what the fields leave over
OUTLIER = 10.0  # a squared score this many times the median counts less, or one particle would rule all others


class ScoredParticles(eqx.Module):
    """Particles on their way: each with its log density, its log weight (normalised), and the score of the law that the
    weighted particles stand for, ∇ log of density times weight."""

    points: Points
    log_density: PerParticle
    scores: Points
    log_weights: PerParticle


class Rates(eqx.Module):
    """d/dt of particles. `log_weights` is ∇·v + v · ∇ log q + ℓ, without the mean: its average is E ℓ = d log Z/dt."""

    points: Points
    log_density: PerParticle
    scores: Points
    log_weights: PerParticle


class Seen(eqx.Module):
    """Likelihood and density as the particles see them, in their own frame; what is not finite has no weight."""

    whitening: Whitening
    white: Points
    weights: PerParticle
    own_scores: Points
    values: PerParticle
    scores: Points
    fine: Bool[Array, " n"]


class Affine(eqx.Module):
    """The part of the velocity that scores alone give; exact for linear-Gaussian models (`velocities.affine`)."""

    mean_score: Point
    half_curvature: Matrix


class FieldValues(eqx.Module):
    """Functions, slopes and curvatures of the fields at every particle; zero where they do not exist."""

    values: Float[Array, "n f"]
    slopes: Float[Array, "n f d"]
    curvatures: Float[Array, "n f d d"]
    usable: Bool[Array, " n"]


def rates(particles: ScoredParticles, likelihood: Likelihood, fields: Fields, ridge: float) -> tuple[Rates, Scalar]:
    """Where the particles go, and how fast: root mean square velocity and stretch, in units of the set's own size.

    The affine part comes first; the fields correct what it leaves over, and a ridge on their energy lets them do no
    more than that.
    """
    seen = look(particles, likelihood)
    affine = affine_part(seen)
    basis = evaluate_fields(seen, likelihood, fields)
    return solve(seen, affine, basis, ridge)


def look(particles: ScoredParticles, likelihood: Likelihood) -> Seen:
    """Values and scores of the likelihood in the frame of the set."""
    weights = jnp.exp(particles.log_weights)
    whitening = whitening_of(particles.points, weights)
    white, own_scores = whitening.whiten(particles.points), whitening.covectors(particles.scores)
    values, scores = jax.vmap(jax.value_and_grad(_in_frame(whitening, likelihood)))(white)
    fine = jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), -1) & jnp.all(jnp.isfinite(own_scores), -1)
    weights = jnp.where(fine, weights, 0.0)
    scores, own_scores = jnp.where(fine[:, None], scores, 0.0), jnp.where(fine[:, None], own_scores, 0.0)
    return Seen(whitening, white, weights / jnp.sum(weights), own_scores, values, scores, fine)


def affine_part(seen: Seen) -> Affine:
    mean_score = seen.weights @ seen.scores
    slope = (seen.weights[:, None] * (seen.scores - mean_score)).T @ seen.white
    return Affine(mean_score, 0.25 * (slope + slope.T))


def evaluate_fields(seen: Seen, likelihood: Likelihood, fields: Fields) -> FieldValues:
    size = jnp.sqrt(seen.weights @ jnp.sum(seen.scores**2, axis=-1)) + 1e-12
    log_likelihood = _in_frame(seen.whitening, likelihood)

    def functions(at: Point) -> Float[Array, " f"]:
        return fields(at, jax.grad(log_likelihood)(at) / size)

    value = jax.vmap(functions)(seen.white)
    slopes = jax.vmap(jax.jacfwd(functions))(seen.white)
    curvatures = jax.vmap(jax.jacfwd(jax.jacfwd(functions)))(seen.white)
    usable = seen.fine & jnp.all(jnp.isfinite(value), -1) & jnp.all(jnp.isfinite(curvatures), axis=(-3, -2, -1))
    value, slopes, curvatures = (
        jnp.where(usable.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, 0.0) for leaf in (value, slopes, curvatures)
    )
    return FieldValues(value, slopes, curvatures, usable)


def solve(seen: Seen, affine: Affine, basis: FieldValues, ridge: float) -> tuple[Rates, Scalar]:
    """One equation a particle, ∇·v + v · ∇ log q + ℓ = E ℓ, in the least-squares sense; and what follows from it."""
    n, value, slopes = seen.white.shape[0], basis.values, basis.slopes
    half_curvature = affine.half_curvature
    effect = (slopes + value[:, :, None] * seen.own_scores[:, None, :]).reshape(n, -1)
    drift = affine.mean_score + seen.white @ half_curvature
    gap = jnp.trace(half_curvature) + jnp.sum(drift * seen.own_scores, -1) + jnp.where(seen.fine, seen.values, 0.0)
    squared = jnp.sum(seen.own_scores**2, axis=-1)
    share = seen.weights * jnp.minimum(1.0, OUTLIER * jnp.median(squared) / (squared + 1e-12)) * basis.usable
    share /= jnp.sum(share)
    theta = _least_squares(effect - share @ effect, gap - share @ gap, share, value, ridge).reshape(value.shape[1], -1)

    velocity = drift + value @ theta
    stretch = half_curvature + jnp.einsum("nfb,fa->nab", slopes, theta)
    divergence = jnp.trace(half_curvature) + jnp.einsum("nfa,fa->n", slopes, theta)
    steepening = jnp.einsum("nfab,fa->nb", basis.curvatures, theta)
    left = gap + effect @ theta.reshape(-1)
    bent = jnp.einsum("nab,na->nb", stretch, seen.own_scores)
    score_rates = _gradient(left, share, value, slopes) - bent - steepening
    moved = Rates(
        seen.whitening.vectors(velocity),
        -divergence,
        score_rates @ seen.whitening.inverse_scale,
        jnp.where(seen.fine, left, -jnp.inf),
    )
    typical = jnp.sqrt(share @ jnp.sum(velocity**2, axis=-1)) + jnp.sqrt(share @ jnp.sum(stretch**2, axis=(-2, -1)))
    fastest = jnp.max(jnp.where(share > 0, jnp.sqrt(jnp.sum(stretch**2, axis=(-2, -1))), 0.0))
    return moved, jnp.maximum(typical, FOLDING * fastest)


def _in_frame(whitening: Whitening, likelihood: Likelihood):
    """The log likelihood as a function of the whitened point."""

    def log_likelihood(at: Point) -> Scalar:
        x = whitening.mean + whitening.scale @ at
        return likelihood.model.log_likelihood(x, likelihood.observation)

    return log_likelihood


def _least_squares(effect: Array, gap: PerParticle, share: PerParticle, value: Array, ridge: float) -> Array:
    """θ that minimises Σ share (gap + effect θ)² + ridge Σ θ² E[field²]."""
    dim = effect.shape[1] // value.shape[1]
    energy = jnp.repeat(share @ value**2, dim) + 1e-8
    # in units in which each field has energy one: fields of very different size would spoil float32
    scaled = effect / jnp.sqrt(energy)
    normal = (share[:, None] * scaled).T @ scaled + ridge * jnp.eye(effect.shape[1], dtype=effect.dtype)
    solution = -jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(normal), (share * gap) @ scaled)
    return solution / jnp.sqrt(energy)


def _gradient(left: PerParticle, share: PerParticle, value: Array, slopes: Array) -> Points:
    """The gradient of what is left over, by fitting it with the fields' own functions.

    What is left over turns into weights, and weights that change from place to place bend the target's score.
    """
    centred = value - share @ value
    energy = share @ centred**2 + 1e-8
    scaled = centred / jnp.sqrt(energy)
    normal = (share[:, None] * scaled).T @ scaled + FIT_RIDGE * jnp.eye(value.shape[1], dtype=value.dtype)
    fitted = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(normal), (share * (left - share @ left)) @ scaled)
    return jnp.einsum("nfa,f->na", slopes, fitted / jnp.sqrt(energy))
