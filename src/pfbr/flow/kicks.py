"""Steps of a corrected affine flow: half of the affine map, a kick for what it leaves undone, and the other half.

The affine part is in closed form however sharp an observation is (`flow.affine`), and the kick has an exact
determinant: a few steps are enough, and what these get wrong is in the weights.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.affine import affine_map, seen_from
from pfbr.flow.fields.seen import ValuesAndScores, see
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.affine import TimeSchedule
from pfbr.flow.velocities.equivariant import EquivariantVelocity, Given, given_at, log_determinant
from pfbr.particles.whitening import whitening_of
from pfbr.typing import PerParticle, Points, Scalar, Support


class Turn(eqx.Module):
    """One step but for the kick: x ↦ base + kick @ carry, with the log determinant of the affine part."""

    base: Points
    carry: Float[Array, "r d"]
    log_det: Scalar
    given: Given

    def end(self, velocity: EquivariantVelocity) -> tuple[Points, PerParticle]:
        """Where the points are after the step, and the log determinant at each."""
        kicks, jacobians = velocity.kicks(self.given)
        size = self.given.size
        return self.base + size * kicks.T @ self.carry, self.log_det + log_determinant(size * jacobians)


def _tangent(support: Points, weights: PerParticle, values_and_scores: ValuesAndScores):
    """Frame, mean score and minus the curvature: what the first look at a cloud needs."""
    frame = whitening_of(support, weights)
    values, gradients = values_and_scores(support)
    alive = jnp.isfinite(values) & jnp.all(jnp.isfinite(gradients), axis=1)
    scores = jnp.where(alive[:, None], frame.covectors(gradients), 0)
    slope = weights @ scores
    curvature = (weights[:, None] * (scores - slope)).T @ frame.whiten(support)
    return frame, slope, -0.5 * (curvature + curvature.T)


def turn(
    points: Points,
    support: Support | None,
    weights: Float[Array, " s"],
    values_and_scores: ValuesAndScores,
    width: Scalar,
) -> tuple[Turn, Turn]:
    """The step over `width` of the observation, for the points and for the cloud (the same, without a support)."""
    cloud = points if support is None else support
    frame, slope, curvature = _tangent(cloud, weights, values_and_scores)
    half = affine_map(frame, slope, curvature, 0.5 * width)
    middle = half(cloud)
    seen = see(middle, weights, values_and_scores)
    # the quadratic that is seen from half-way
    whole = affine_map(frame, *seen_from(frame, seen.frame, seen.mean_score, -seen.curvature), width)
    onwards = jnp.linalg.solve(half.root, whole.root)
    log_det = whole.log_det

    def of(some: Points, halfway: Points, own) -> Turn:
        active, given = given_at(seen, halfway, values_and_scores, own, width)
        kicked = frame.inverse_scale @ seen.frame.scale @ active.directions.T  # columns: in the frame of the start
        return Turn(whole(some), frame.vectors(kicked.T @ onwards), log_det, given)

    ours = of(cloud, middle, jnp.arange(cloud.shape[0]))
    return (ours, ours) if support is None else (of(points, half(points), None), ours)


def kicked_steps(
    velocity: EquivariantVelocity,
    points: Points,
    weights: Float[Array, " s"],
    values_and_scores: ValuesAndScores,
    times: Float[Array, " ticks"],
    support: Support | None = None,
) -> tuple[Points, PerParticle]:
    """The points after all steps, and the log determinant at each."""

    @jax.checkpoint
    def step(state, width):
        points, log_det, support = state
        mine, others = turn(points, support, weights, values_and_scores, width)
        points, gained = mine.end(velocity)
        support = None if support is None else others.end(velocity)[0]
        return (points, log_det + gained, support), None

    start = (points, jnp.zeros(points.shape[0], points.dtype), support)
    return jax.lax.scan(step, start, jnp.diff(times))[0][:2]


def corrected_steps(
    velocity: EquivariantVelocity,
    context: TimeSchedule,
    likelihood: Likelihood,
    points: Points,
    log_density: PerParticle,
    support: Support | None,
    *,
    steps: int,
    reverse: bool,
) -> tuple[Points, PerParticle]:
    """The flow from t = 0 to 1 in `steps` steps of the velocity's own time schedule. Its kicks are not undone in closed
    form: back it goes by the kicks that are seen from the end."""
    ticks = jnp.linspace(0.0, 1.0, steps + 1, dtype=points.dtype)
    times = jax.vmap(context.time)(ticks[::-1] if reverse else ticks)
    cloud = points if support is None else support
    weights = jnp.full(cloud.shape[0], 1 / cloud.shape[0], points.dtype)
    points, log_det = kicked_steps(velocity, points, weights, likelihood.values_and_scores, times, support)
    return points, log_density - log_det
