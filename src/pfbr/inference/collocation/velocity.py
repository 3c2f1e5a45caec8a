"""The velocity that satisfies the continuity equation on the particles themselves, found by least squares.

Between prior and posterior lie the densities q_t ∝ q_0 exp(t ℓ). A velocity carries particles along them if

    r = ∇·v + v · ∇ log q + ℓ − E ℓ

vanishes. v is a combination of fields, r is linear in its coefficients, and each particle that knows its own score
∇ log q gives one equation. What the fields cannot express is left over as r, which is just the rate at which the log
weight of a particle grows: the error of the velocity is not lost but turned into weights.
"""

import itertools
import math

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.likelihood import Likelihood
from pfbr.particles.whitening import whitening_of
from pfbr.typing import PerParticle, Point, Points, Scalar

PARTICLES_PER_FIELD = 5  # fewer, and the equations fit the accident of the draw
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
    """d/dt of a cloud. `log_weights` is ∇·v + v · ∇ log q + ℓ, without the mean: its average is E ℓ = d log Z/dt."""

    points: Points
    log_density: PerParticle
    scores: Points
    log_weights: PerParticle


class Fields(eqx.Module):
    """Which fields there are: monomials in w up to `degree`, and the likelihood's own score times those up to
    `own_degree` (−1: none), each along every axis.

    The likelihood's own score is what knows where a thin curved posterior runs.
    """

    dim: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    own_degree: int = eqx.field(static=True)

    @property
    def num(self) -> int:
        """How many fields."""
        monomials = math.comb(self.dim + self.degree, self.dim)
        own = math.comb(self.dim + self.own_degree, self.dim) if self.own_degree >= 0 else 0
        return self.dim * (monomials + self.dim * own)

    def __call__(self, w: Point, own: Point) -> Float[Array, " f"]:
        """The scalar functions; field (f, a) is function f along axis a."""
        functions = _monomials(w, self.degree)
        if self.own_degree >= 0:
            functions = jnp.concatenate([functions, jnp.outer(_monomials(w, self.own_degree), own).reshape(-1)])
        return functions


def choose_fields(dim: int, num_particles: int) -> Fields:
    """The richest fields that the particles can tell apart; with very few, affine ones."""
    for degree, own_degree in ((3, 1), (3, -1), (2, 0), (2, -1)):
        fields = Fields(dim, degree, own_degree)
        if fields.num * PARTICLES_PER_FIELD <= num_particles:
            return fields
    return Fields(dim, 1, -1)


def _monomials(w: Point, degree: int) -> Float[Array, " m"]:
    powers = [jnp.ones((), w.dtype)]
    for total in range(1, degree + 1):
        powers += [
            math.prod((w[i] for i in chosen), start=jnp.ones((), w.dtype))
            for chosen in itertools.combinations_with_replacement(range(w.shape[0]), total)
        ]
    return jnp.stack(powers)


def rates(cloud: ScoredParticles, likelihood: Likelihood, fields: Fields, ridge: float) -> tuple[Rates, Scalar]:
    """Where the cloud goes, and how fast: root mean square velocity and stretch, in units of the cloud's own size.

    The affine part comes from scores alone and is exact for linear-Gaussian models (see `velocities.gaussian`); the
    fields correct what it leaves over, and a ridge on their energy lets them do no more than that.
    """
    n, _ = cloud.points.shape
    weights = jnp.exp(cloud.log_weights)
    frame = whitening_of(cloud.points, weights)
    w, own_scores = frame.whiten(cloud.points), frame.covectors(cloud.scores)

    def log_likelihood(at: Point) -> Scalar:
        return likelihood.model.log_likelihood(frame.mean + frame.scale @ at, likelihood.observation)

    values, u = jax.vmap(jax.value_and_grad(log_likelihood))(w)
    fine = jnp.isfinite(values) & jnp.all(jnp.isfinite(u), axis=-1) & jnp.all(jnp.isfinite(own_scores), axis=-1)
    weights = jnp.where(fine, weights, 0.0)
    weights /= jnp.sum(weights)
    u, own_scores = jnp.where(fine[:, None], u, 0.0), jnp.where(fine[:, None], own_scores, 0.0)

    mean_score = weights @ u
    slope = (weights[:, None] * (u - mean_score)).T @ w
    half_curvature = 0.25 * (slope + slope.T)

    # functions, slopes and curvatures of the fields at every particle
    size = jnp.sqrt(weights @ jnp.sum(u**2, axis=-1)) + 1e-12

    def functions(at: Point) -> Float[Array, " f"]:
        return fields(at, jax.grad(log_likelihood)(at) / size)

    value = jax.vmap(functions)(w)
    slopes = jax.vmap(jax.jacfwd(functions))(w)
    curvatures = jax.vmap(jax.jacfwd(jax.jacfwd(functions)))(w)
    usable = fine & jnp.all(jnp.isfinite(value), axis=-1) & jnp.all(jnp.isfinite(curvatures), axis=(-3, -2, -1))
    value, slopes, curvatures = (
        jnp.where(usable.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, 0.0) for leaf in (value, slopes, curvatures)
    )

    # one equation a particle: ∇·v + v · ∇ log q + ℓ = E ℓ
    effect = (slopes + value[:, :, None] * own_scores[:, None, :]).reshape(n, -1)
    affine = mean_score + w @ half_curvature
    gap = jnp.trace(half_curvature) + jnp.sum(affine * own_scores, axis=-1) + jnp.where(fine, values, 0.0)
    squared = jnp.sum(own_scores**2, axis=-1)
    share = weights * jnp.minimum(1.0, OUTLIER * jnp.median(squared) / (squared + 1e-12)) * usable
    share /= jnp.sum(share)
    theta = _least_squares(effect - share @ effect, gap - share @ gap, share, value, ridge).reshape(value.shape[1], -1)

    velocity = affine + value @ theta
    stretch = half_curvature + jnp.einsum("nfb,fa->nab", slopes, theta)
    divergence = jnp.trace(half_curvature) + jnp.einsum("nfa,fa->n", slopes, theta)
    steepening = jnp.einsum("nfab,fa->nb", curvatures, theta)
    left = gap + effect @ theta.reshape(-1)
    score_rates = -jnp.einsum("nab,na->nb", stretch, own_scores) - steepening + _gradient(left, share, value, slopes)
    moved = Rates(
        frame.vectors(velocity), -divergence, score_rates @ frame.inverse_scale, jnp.where(fine, left, -jnp.inf)
    )
    typical = jnp.sqrt(share @ jnp.sum(velocity**2, axis=-1)) + jnp.sqrt(share @ jnp.sum(stretch**2, axis=(-2, -1)))
    fastest = jnp.max(jnp.where(share > 0, jnp.sqrt(jnp.sum(stretch**2, axis=(-2, -1))), 0.0))
    return moved, jnp.maximum(typical, FOLDING * fastest)


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
