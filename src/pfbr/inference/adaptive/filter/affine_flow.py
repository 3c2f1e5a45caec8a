"""The affine flow of a cloud under a likelihood, in closed form: exact for a Gaussian cloud and a quadratic likelihood.

In the whitened frame a log likelihood is seen as the quadratic c + b·w − ½ wᵀMw whose mean slope b and mean curvature M
over the cloud are its own. N(0, I) becomes N((I + M)⁻¹ b, (I + M)⁻¹) by w ↦ (I + M)^(−½) w + (I + M)⁻¹ b. Other
likelihoods are taken in a few steps, each seen again from half-way, short ones first where the observation is sharp.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.particles.whitening import Whitening, whitening_of

LEAST = 0.5  # of 1 + λ: a likelihood that curves upwards may halve a precision in one step, and less and less beyond


class Quadratic(eqx.Module):
    """A log likelihood as the cloud sees it: level + slope·w − ½ wᵀ curvature w, in the cloud's own frame."""

    whitening: Whitening
    level: Array
    slope: Array
    curvature: Array
    misfit: Array  # root mean square of what the quadratic leaves of the log likelihood
    sharpness: Array  # root mean square of the whitened scores

    @property
    def log_evidence(self) -> Array:
        """log ∫ N(w; 0, I) exp(quadratic)."""
        precision = jnp.eye(self.slope.shape[0]) + self.curvature
        return (
            self.level
            - 0.5 * jnp.linalg.slogdet(precision)[1]
            + 0.5 * self.slope @ jnp.linalg.solve(precision, self.slope)
        )


def quadratic(points: Array, weights: Array, value_and_score) -> Quadratic:
    whitening = whitening_of(points, weights, shrink=False)
    values, gradients = value_and_score(points)
    alive = jnp.isfinite(values) & jnp.all(jnp.isfinite(gradients), axis=1)
    values = jnp.where(alive, values, jnp.min(jnp.where(alive, values, jnp.inf)))
    scores = jnp.where(alive[:, None], whitening.covectors(gradients), 0.0)
    w = whitening.whiten(points)
    slope = weights @ scores
    curvature = -((weights[:, None] * (scores - slope)).T @ w)
    curvature = 0.5 * (curvature + curvature.T)
    shape = w @ slope - 0.5 * jnp.sum((w @ curvature) * w, axis=1)
    level = weights @ (values - shape)
    misfit = jnp.sqrt(weights @ (values - shape - level) ** 2)
    return Quadratic(whitening, level, slope, curvature, misfit, jnp.sqrt(weights @ jnp.sum(scores**2, axis=1)))


class AffineMap(eqx.Module):
    """w ↦ root w + shift in a whitened frame."""

    whitening: Whitening
    root: Array
    shift: Array
    log_det: Array

    def __call__(self, points: Array) -> Array:
        # the difference is added, so that a map that is the identity moves nothing by rounding
        w = self.whitening.whiten(points)
        return points + self.whitening.vectors(w @ (self.root - jnp.eye(self.root.shape[0])) + self.shift)


def posterior_map(seen: Quadratic, share: Array | float = 1.0) -> AffineMap:
    """From the cloud to its posterior under this share of the quadratic."""
    values, vectors = jnp.linalg.eigh(share * seen.curvature)
    low = jnp.minimum(values, LEAST - 1)
    precision = jnp.where(values > LEAST - 1, 1 + values, LEAST * jnp.exp((low + 1 - LEAST) / LEAST))
    root = (vectors / jnp.sqrt(precision)) @ vectors.T
    shift = (vectors / precision) @ (vectors.T @ (share * seen.slope))
    return AffineMap(seen.whitening, root, shift, -0.5 * jnp.sum(jnp.log(precision)))


def _seen_from(whitening: Whitening, seen: Quadratic) -> Quadratic:
    """The same quadratic in another frame."""
    turn = jax.scipy.linalg.solve_triangular(seen.whitening.scale, whitening.scale, lower=True)
    away = seen.whitening.whiten(whitening.mean[None])[0]
    curvature = turn.T @ seen.curvature @ turn
    slope = turn.T @ (seen.slope - seen.curvature @ away)
    return Quadratic(whitening, seen.level, slope, curvature, seen.misfit, seen.sharpness)


class FlowState(eqx.Module):
    points: Array
    log_det: Array


def affine_flow(points: Array, weights: Array, value_and_score, *, steps: int = 4) -> FlowState:
    """The points moved by the whole likelihood, and the log determinant of the map (one for all points)."""
    sharp = jnp.clip(quadratic(points, weights, value_and_score).sharpness, 1e-3, 1e6)
    times = jnp.expm1(jnp.log1p(sharp) * jnp.linspace(0, 1, steps + 1)) / sharp

    def step(state: FlowState, width):
        seen = quadratic(state.points, weights, value_and_score)
        half_way = posterior_map(seen, 0.5 * width)(state.points)
        seen = _seen_from(seen.whitening, quadratic(half_way, weights, value_and_score))
        go = posterior_map(seen, width)
        return FlowState(go(state.points), state.log_det + go.log_det), None

    return jax.lax.scan(step, FlowState(points, jnp.zeros((), points.dtype)), jnp.diff(times))[0]
