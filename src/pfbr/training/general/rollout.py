"""Clouds as the flow itself makes them: exact draws moved a part of the way by the velocity that is being learned."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.fields.seen import see
from pfbr.flow.velocities.equivariant import EquivariantVelocity, schedule
from pfbr.particles.particles import ess
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind
from pfbr.typing import PerParticle, Points, Scalar


class Rolled(eqx.Module):
    """The cloud after each step, the share of the observation that is in it then, and log weights to that target."""

    clouds: Float[Array, "steps n d"]
    shares: Float[Array, " steps"]
    log_weights: Float[Array, "steps n"]


class _Moving(eqx.Module):
    """The cloud at the start of a step, where the velocity is asked for next, and the first of Heun's two slopes."""

    start: Points
    here: Points
    slope: Points
    log_det: PerParticle
    growth: PerParticle


def roll(
    velocity: EquivariantVelocity | None, kinds: tuple[Kind, ...], problem: Problem, cloud: Points, steps: int
) -> Rolled:
    """Heun's steps, short ones first where the observation is sharp; without a velocity nothing moves."""
    new = jax.vmap(jax.value_and_grad(lambda x: problem.log_new(kinds, x)))
    target = jax.vmap(lambda x: jnp.stack([problem.log_before(kinds, x), problem.log_new(kinds, x)]))
    clock = schedule(see(cloud, None, new))
    ticks = jax.vmap(clock.time)(jnp.linspace(0, 1, steps + 1))
    if velocity is None:
        clouds, log_dets = jnp.broadcast_to(cloud, (steps, *cloud.shape)), jnp.zeros((steps, cloud.shape[0]))
    else:
        clouds, log_dets = _moved(velocity, new, cloud, jnp.diff(ticks))
    at = jax.lax.map(target, jnp.concatenate([cloud[None], clouds]))
    log_weights = at[1:, :, 0] + ticks[1:, None] * at[1:, :, 1] - at[0, :, 0] + log_dets
    return Rolled(clouds, ticks[1:], log_weights)


def _moved(velocity: EquivariantVelocity, new, cloud: Points, widths):
    """Points and log determinants after each step. One evaluation a turn of the loop, so that it is compiled once."""
    own = jnp.arange(cloud.shape[0])

    def evaluate(moving: _Moving, turn):
        width, second = turn
        slope, growth = velocity.field(moving.here, moving.here, None, new, own)
        slope = jnp.where(second, 0.5 * (moving.slope + slope), slope)
        growth = jnp.where(second, 0.5 * (moving.growth + growth), growth)
        here = moving.start + width * slope
        log_det = jnp.where(second, moving.log_det + width * growth, moving.log_det)
        return _Moving(jnp.where(second, here, moving.start), here, slope, log_det, growth), (here, log_det)

    none = jnp.zeros(cloud.shape[0])
    begin = _Moving(cloud, cloud, jnp.zeros_like(cloud), none, none)
    turns = (jnp.repeat(widths, 2), jnp.tile(jnp.array([False, True]), len(widths)))
    _, (clouds, log_dets) = jax.lax.scan(evaluate, begin, turns)
    return clouds[1::2], log_dets[1::2]


def ess_share(log_weights: PerParticle) -> Scalar:
    """The effective sample size over the number of particles; what is not finite counts for nothing."""
    log_weights = jnp.where(jnp.isfinite(log_weights), log_weights, -jnp.inf)
    share = ess(log_weights) / log_weights.shape[0]
    return jnp.where(jnp.isfinite(share), share, 0.0)
