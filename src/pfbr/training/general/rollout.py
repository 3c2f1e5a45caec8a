"""Clouds as the flow itself makes them: exact draws moved step by step by the velocity that is being learned."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.flow.fields.seen import see
from pfbr.flow.kicks import Turn, turn
from pfbr.flow.velocities.equivariant import EquivariantVelocity, schedule
from pfbr.particles.particles import ess
from pfbr.training.objectives.kicks import Lesson
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind
from pfbr.typing import PerParticle, Points, Scalar


class Rolled(eqx.Module):
    """Log weights after each step, and the steps themselves as something to learn from, at some of the points."""

    log_weights: Float[Array, "steps n"]
    lessons: Lesson  # along a leading axis


def roll(
    velocity: EquivariantVelocity,
    kinds: tuple[Kind, ...],
    problem: Problem,
    cloud: Points,
    steps: int,
    *,
    begun: Scalar | float = 0.0,
    chosen: Int[Array, " m"] | None = None,
) -> Rolled:
    """From exact draws with the share `begun` of the observation in them; short steps first where it is sharp."""
    chosen = jnp.arange(0) if chosen is None else chosen
    left = 1 - jnp.asarray(begun, cloud.dtype)
    each = jax.vmap(jax.value_and_grad(lambda x: problem.log_new(kinds, x)))

    def new(points):
        values, scores = each(points)
        return left * values, left * scores

    ticks = jax.vmap(schedule(see(cloud, None, new)).time)(jnp.linspace(0, 1, steps + 1, dtype=cloud.dtype))
    weights = jnp.full(cloud.shape[0], 1 / cloud.shape[0], cloud.dtype)
    density = jax.vmap(lambda x, share: problem.log_until(kinds, x, share), (0, None))

    def step(state, ends):
        points, log_density, target = state
        made, _ = turn(points, None, weights, new, ends[1] - ends[0])
        after, log_det = made.end(velocity)
        share = begun + left * ends[1]
        some = Turn(made.base[chosen], made.carry, made.log_det, _some(made.given, chosen))
        # each step answers for itself: one that mended earlier errors would be wrong once these are no longer made
        lesson = Lesson(some, target[chosen], problem, share)
        log_density = log_density - log_det
        target = density(after, share)
        return (after, log_density, target), (target - log_density, lesson)

    first = density(cloud, jnp.asarray(begun, cloud.dtype))
    start = (cloud, first, first)
    return Rolled(*jax.lax.scan(step, start, jnp.stack([ticks[:-1], ticks[1:]], axis=1))[1])


def _some(given, chosen):
    return jax.tree.map(lambda leaf: leaf[..., chosen] if leaf.ndim else leaf, given)


def ess_share(log_weights: PerParticle) -> Scalar:
    """The effective sample size over the number of particles; what is not finite counts for nothing."""
    log_weights = jnp.where(jnp.isfinite(log_weights), log_weights, -jnp.inf)
    share = ess(log_weights) / log_weights.shape[0]
    return jnp.where(jnp.isfinite(share), share, 0.0)
