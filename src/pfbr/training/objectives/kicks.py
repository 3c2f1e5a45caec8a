"""What a kick leaves of the weights: the loss of the general operator, for a step whose fields have no weights in them.

A step from q_s to q_t adds log q_t(x') − log q_s(x) + log det to a log weight, which should be the same everywhere. All
of a step but the coefficients of the network can be computed once and kept; what is left to compute is the small
network and the density at the new points.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.kicks import Turn
from pfbr.flow.velocities.equivariant import EquivariantVelocity
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind
from pfbr.typing import PerParticle, Scalar

LARGEST = 30.0  # nats by which a log weight may go astray; beyond, how far no longer matters
WORTH = 4.0  # of squared nats: where the loss turns from squares to logarithms


class Lesson(eqx.Module):
    """A step at some points of a cloud, the log density wanted there before it, and the one wanted after."""

    turn: Turn
    log_density: Float[Array, " n"]
    problem: Problem
    share: Scalar  # of the new observation that is in after the step


def log_weights(kinds: tuple[Kind, ...], velocity: EquivariantVelocity, lesson: Lesson) -> PerParticle:
    points, log_det = lesson.turn.end(velocity)
    target = jax.vmap(lambda x: lesson.problem.log_until(kinds, x, lesson.share))(points)
    return target + log_det - lesson.log_density


def loss(log_weights: PerParticle) -> Scalar:
    """−log of the share of the ESS that is left, which single particles left behind decide, and log(1 + 4 Var) in
    squared nats and about the median, which sees those with no weight as well."""
    away = log_weights - jnp.median(log_weights)
    away = LARGEST * jnp.tanh(away / LARGEST)
    lost = jax.nn.logsumexp(2 * away) - 2 * jax.nn.logsumexp(away) + jnp.log(float(len(away)))
    return lost + 0.25 * jnp.log1p(WORTH * jnp.mean(away**2))


def usable(lesson: Lesson) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(lesson)]))
