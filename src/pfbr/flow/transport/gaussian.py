"""Where to look for the posterior: by the affine flow, or by weights if they disagree; and what a Gaussian leaves."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.affine import affine_map, seen_from
from pfbr.particles.whitening import Whitening, whitening_of
from pfbr.typing import Matrix, PerParticle, Point, Points, Scalar

COUNTS = 12.0  # effective particles of the weighed cloud, and two for each dimension: as many know where a posterior is
STEPS = 4  # short ones first where the observation is sharp


class Outlook(eqx.Module):
    """w ↦ w root + shift takes N(0, I) to about the posterior, both in the frame of the cloud before the observation.
    `left`: mean squares of the slopes that this leaves of the log target, in the frame of the posterior."""

    root: Matrix
    shift: Point
    left: Matrix


def bounded(values: PerParticle, scores: Points) -> tuple[PerParticle, Points]:
    """What is ruled out counts like the least likely of the others, without a score."""
    alive = jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), axis=1)
    lowest = jnp.min(jnp.where(alive, values, jnp.inf))
    return jnp.where(alive, values, jnp.where(jnp.isfinite(lowest), lowest, 0)), jnp.where(alive[:, None], scores, 0)


def slopes_left(slopes: Points, weights: PerParticle) -> Matrix:
    """Mean squares of slopes about their mean, none of which decides alone."""
    slopes = slopes - weights @ slopes
    shorter = slopes / jnp.sqrt(1 + jnp.sum(slopes**2, axis=1, keepdims=True) / 9)
    return (weights[:, None] * shorter).T @ shorter


def _tangent(points: Points, weights: PerParticle, values_and_scores) -> tuple[Whitening, Point, Matrix, Scalar]:
    """Frame, mean score and minus the curvature that the cloud sees, and the root mean square of the scores."""
    frame = whitening_of(points, weights)
    scores = frame.covectors(bounded(*values_and_scores(points))[1])
    slope = weights @ scores
    curvature = (weights[:, None] * (scores - slope)).T @ frame.whiten(points)
    return frame, slope, -0.5 * (curvature + curvature.T), jnp.sqrt(weights @ jnp.sum(scores**2, axis=1))


def by_affine_flow(w: Float[Array, "n d"], weights: PerParticle, values_and_scores) -> tuple[Matrix, Point]:
    """Root and shift in the frame of the cloud, where the cloud is `w` and the log likelihood is asked."""
    d = w.shape[1]
    sharpness = jnp.clip(jax.lax.stop_gradient(_tangent(w, weights, values_and_scores)[3]), 1e-3, 1e6)
    times = jnp.expm1(jnp.log1p(sharpness) * jnp.linspace(0, 1, STEPS + 1, dtype=w.dtype)) / sharpness

    def step(state, width):
        points, corners = state
        frame, slope, curvature, _ = _tangent(points, weights, values_and_scores)
        half = affine_map(frame, slope, curvature, 0.5 * width)
        there, slope, curvature, _ = _tangent(half(points), weights, values_and_scores)
        go = affine_map(frame, *seen_from(frame, there, slope, curvature), width)
        return (go(points), go(corners)), None

    corners = jnp.concatenate([jnp.zeros((1, d), w.dtype), jnp.eye(d, dtype=w.dtype)])
    (_, corners), _ = jax.lax.scan(step, (w, corners), jnp.diff(times))
    return corners[1:] - corners[0], corners[0]


def outlook_of(w: Points, weights: PerParticle, values_and_scores) -> Outlook:
    """The affine flow's, but where enough of the weighed cloud counts and is somewhere else: what a cloud's mean slope
    and mean curvature say of a likelihood with a heavy tail, or of a scale, may lead anywhere."""
    d = w.shape[1]
    root, shift = by_affine_flow(w, weights, values_and_scores)
    weighed = jax.nn.softmax(jnp.log(weights) + bounded(*values_and_scores(w))[0])
    mean = weighed @ w
    covariance = (weighed[:, None] * (w - mean)).T @ (w - mean) + 1e-6 * jnp.eye(d, dtype=w.dtype)
    spread = root.T @ root
    size = 1 / jnp.sum(weighed**2)
    apart = (mean - shift) @ jnp.linalg.solve(spread + covariance, mean - shift)
    elsewhere = (size > COUNTS + 2 * d) & (apart > (1 + 4 / size) * d)
    values, vectors = jnp.linalg.eigh(covariance)
    by_weights = (vectors * jnp.sqrt(jnp.maximum(values, 1e-6))) @ vectors.T
    root, shift = jnp.where(elsewhere, by_weights, root), jnp.where(elsewhere, mean, shift)
    points = w @ root + shift
    scores = bounded(*values_and_scores(points))[1]
    return Outlook(root, shift, slopes_left((scores - points) @ root.T + w, weights))
