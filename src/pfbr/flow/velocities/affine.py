"""A velocity that needs no training and is exact for linear-Gaussian models."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.base import Velocity
from pfbr.particles.whitening import Whitening, whitening_of
from pfbr.typing import Key, Matrix, PerParticle, Point, Points, Scalar, Support


class TimeSchedule(eqx.Module):
    """The time change t(τ) = ((1 + λ)^τ − 1) / λ: short steps first when an observation is sharp.

    λ is the root mean square of the whitened scores on arrival: the first move is of that size, and the precision
    of a Gaussian grows as 1 + λ t, so that steps of equal length in τ are of equal relative size.
    """

    sharpness: Scalar

    def time(self, tau: Scalar) -> Scalar:
        """t(τ)."""
        return jnp.expm1(jnp.log1p(self.sharpness) * tau) / self.sharpness

    def rate(self, tau: Scalar) -> Scalar:
        """dt/dτ."""
        growth = jnp.log1p(self.sharpness)
        return growth / self.sharpness * jnp.exp(growth * tau)


class View(eqx.Module):
    """A likelihood as the set sees it, in the set's own frame: points w, values ℓ − mean ℓ, scores u = scaleᵀ ∇ℓ."""

    frame: Whitening
    points: Points
    values: PerParticle
    scores: Points


def view(support: Support, likelihood: Likelihood) -> View:
    frame = whitening_of(support)
    values, scores = likelihood.values_and_scores(support)
    # A particle that the observation rules out (−inf) has no score; it counts like the least likely of the others.
    alive = jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), axis=-1)
    values = jnp.where(alive, values, jnp.min(jnp.where(alive, values, jnp.inf)))
    scores = jnp.where(alive[:, None], scores, 0.0)
    return View(frame, frame.whiten(support), values - jnp.mean(values), frame.covectors(scores))


def time_schedule_of(seen: View) -> TimeSchedule:
    # Scores that overflow must not stop the clock; 1e-3 is flat enough to count as no time change at all.
    sharpness = jnp.sqrt(jnp.mean(jnp.sum(seen.scores**2, axis=-1)))
    return TimeSchedule(jnp.clip(jax.lax.stop_gradient(sharpness), 1e-3, 1e6))


def affine_part(seen: View) -> tuple[Point, Matrix]:
    """ū and ½ C of v(w) = ū + ½ C w, with ū = mean u_j and C = sym(mean u_j w_jᵀ).

    If the set is N(0, I) and ℓ is quadratic, ∇·(q v) = −q (ℓ − mean ℓ) holds exactly: the density then follows
    q_t ∝ q_0 exp(t ℓ), and at t = 1 it is the posterior.
    """
    mean_score = jnp.mean(seen.scores, axis=0)
    slope = (seen.scores - mean_score).T @ seen.points / seen.points.shape[0]
    return mean_score, 0.25 * (slope + slope.T)


class AffineVelocity(Velocity):
    """v(w) = ū + ½ C w in the frame of the current particles; no weights at all.

    A flat likelihood has no scores, and so moves nothing.
    """

    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> TimeSchedule:
        return time_schedule_of(view(support, likelihood))

    def __call__(
        self, t: Scalar, points: Points, support: Support, context: TimeSchedule, likelihood: Likelihood
    ) -> tuple[Points, Float[Array, " n"]]:
        seen = view(support, likelihood)
        mean_score, half_curvature = affine_part(seen)
        rate = context.rate(t)
        velocity = seen.frame.vectors(mean_score + seen.frame.whiten(points) @ half_curvature)
        return rate * velocity, jnp.broadcast_to(rate * jnp.trace(half_curvature), points.shape[:1])

    def tangent(self, support: Support, likelihood: Likelihood) -> tuple[Whitening, Point, Matrix]:
        """The whitening of the set and, in it, slope ū and curvature M of the quadratic ū·w − ½ wᵀMw that it sees."""
        return self.quadratic(support, likelihood)[:3]

    def quadratic(self, support: Support, likelihood: Likelihood) -> tuple[Whitening, Point, Matrix, Scalar]:
        """The same, and the share of the scores that it leaves: 0 for a likelihood that is a quadratic."""
        seen = view(support, likelihood)
        mean_score, half_curvature = affine_part(seen)
        left = seen.scores - mean_score - 2 * seen.points @ half_curvature
        size = jnp.sum(seen.scores**2)
        share = jnp.sqrt(jnp.sum(left**2) / jnp.where(size > 0, size, 1))
        return seen.frame, mean_score, -2 * half_curvature, jax.lax.stop_gradient(share)

    def schedule(self, context: TimeSchedule, tau: Scalar) -> Scalar:
        """The power t of the likelihood at which the flow is at time τ, from t(0) = 0 to t(1) = 1."""
        return context.time(tau)
