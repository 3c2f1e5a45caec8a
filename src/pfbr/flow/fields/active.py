"""The few directions of a cloud's frame in which an observation has anything to say, and what is seen in them."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.fields.seen import Seen, ValuesAndScores
from pfbr.typing import PerParticle, Points

MOST = 3  # directions: what is corrected lies in them, so that its cost does not grow with the number of unknowns
LONGEST = 4.0  # of a field's vectors


class Active(eqx.Module):
    """Directions of length one, along rows; how much each counts, in all 1; and what the cloud sees in them."""

    directions: Float[Array, "r d"]
    metric: Float[Array, " r"]
    mean_score: Float[Array, " r"]
    curvature: Float[Array, "r r"]
    points: Float[Array, "s r"]
    scores: Float[Array, "s r"]


class At(eqx.Module):
    """Points to be asked about, in the directions; value, score and Hessian of the log likelihood there.

    Here and in `Fields` the points lie along the last axis: many small products are then few long ones.
    """

    points: Float[Array, "r n"]
    values: PerParticle
    scores: Float[Array, "r n"]
    hessians: Float[Array, "r r n"]
    beyond: PerParticle  # mean square of the other coordinates, less one


class Fields(eqx.Module):
    """K vector fields with their Jacobians, and S scalars with their gradients, at n points."""

    vectors: Float[Array, "k r n"]
    jacobians: Float[Array, "k r r n"]  # [:, i, j]: of component i by coordinate j
    scalars: Float[Array, "s n"]
    gradients: Float[Array, "s r n"]


def summed(array: Array, axis: int) -> Array:
    """Over a short axis, written out: the compiler makes a loop over points of it, and not one over the axis."""
    terms = [jax.lax.index_in_dim(array, i, axis, keepdims=False) for i in range(array.shape[axis])]
    return sum(terms[1:], start=terms[0])


def joined(*parts: Fields) -> Fields:
    """All fields together, none of them longer than `LONGEST`: the score of a point in the tail may be a hundred times
    that of others."""
    fields: Fields = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
    e, j = fields.vectors, fields.jacobians
    square = LONGEST**2 + summed(e**2, 1)
    shorter = LONGEST * jax.lax.rsqrt(square)
    turned = summed(e[:, :, None] * j, 1) / square[:, None]
    j = shorter[:, None, None] * (j - e[:, :, None] * turned[:, None])
    return Fields(shorter[:, None] * e, j, fields.scalars, fields.gradients)


def active_of(seen: Seen) -> Active:
    """Where scores point, and where mean and spread of the cloud would change by weighing: for a Gaussian cloud these
    are the same directions, and for a bent one they are not."""
    spread, directions = jax.lax.stop_gradient(_directions(seen))
    return Active(
        directions,
        spread / jnp.sum(spread),
        directions @ seen.mean_score,
        directions @ seen.curvature @ directions.T,
        seen.points @ directions.T,
        seen.scores @ directions.T,
    )


def _directions(seen: Seen) -> tuple[Float[Array, " r"], Float[Array, "r d"]]:
    w, weights = seen.points, seen.weights
    scores = seen.scores / seen.size
    scores = scores / jnp.sqrt(1 + jnp.sum(scores**2, axis=1, keepdims=True) / 9)  # no single one decides
    values = jnp.tanh(0.5 * seen.values / seen.spread)
    values = weights * (values - weights @ values)
    shift = values @ w
    change = (values[:, None] * w).T @ w
    matrix = (weights[:, None] * scores).T @ scores + jnp.outer(shift, shift) + 0.5 * change @ change
    found, vectors = jnp.linalg.eigh(matrix)
    r = min(MOST, w.shape[1])
    return jnp.maximum(found[::-1][:r], 1e-6), vectors[:, ::-1][:, :r].T


def look_at(seen: Seen, active: Active, points: Points, values_and_scores: ValuesAndScores, own: bool) -> At:
    """Value, score and Hessian at the points: a Hessian-vector product for each direction."""
    directions = active.directions
    r, d = directions.shape

    def column(direction):
        tangent = jnp.broadcast_to(direction, points.shape)
        return jax.jvp(lambda p: values_and_scores(p)[1], (points,), (tangent,))[1]

    hessians = jax.vmap(column)(seen.frame.vectors(directions))  # r n d
    hessians = (hessians @ (seen.frame.scale @ directions.T)).transpose(0, 2, 1)
    if own:
        values, scores, whitened = seen.values, seen.scores, seen.points
    else:
        values, gradients = values_and_scores(points)
        scores = seen.frame.covectors(gradients)
        alive = jnp.isfinite(values) & jnp.all(jnp.isfinite(scores), axis=1)
        values = jnp.where(alive, values, seen.lowest) - seen.level
        scores = jnp.where(alive[:, None], scores, 0)
        whitened = seen.frame.whiten(points)
    within = whitened @ directions.T
    rest = (jnp.sum(whitened**2, axis=1) - jnp.sum(within**2, axis=1)) / max(d - r, 1) - (d > r)
    curved = jnp.all(jnp.isfinite(hessians), axis=(0, 1))
    return At(within.T, values, (scores @ directions.T).T, jnp.where(curved, hessians, 0), rest)
