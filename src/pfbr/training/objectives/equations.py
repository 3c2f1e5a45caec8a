"""The continuity equation in any dimension, for a velocity whose fields have no weights in them.

At points of q_t ∝ q_0 exp(tℓ) the residual r = ∇·v + v·∇ log q_t + ℓ − Eℓ has to vanish. With v = affine + m Σ c_k e_k
all but the coefficients c_k and their changes along the vectors can be computed once and kept, in arrays that no longer
know the dimension: problems with one unknown and with ten make up one batch, and a step of learning costs what the
small network costs.
"""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.fields.seen import see
from pfbr.flow.velocities.equivariant import EquivariantVelocity, Invariants, fields_of, invariants, schedule, traces
from pfbr.training.problems.problem import Problem
from pfbr.training.problems.term import Kind
from pfbr.typing import Points, Scalar

LARGEST = 30.0  # nats by which a log weight may go astray in a flow; beyond, how far no longer matters
WORTH = 4.0  # of squared nats: where the loss turns from squares to logarithms


class Equations(eqx.Module):
    """r = (own + Σ_k c_k by_coefficient_k + size Σ_k ∇c_k·e_k) − mean, at n points of one cloud."""

    given: Invariants
    own: Float[Array, " n"]  # of the affine flow alone
    by_coefficient: Float[Array, "n k"]
    size: Scalar
    rate: Scalar  # time per unit of the flow's own clock: a residual counts for as long as it acts


def equations(kinds: tuple[Kind, ...], problem: Problem, share: Scalar, cloud: Points, num: int) -> Equations:
    """At the first `num` points of a cloud that stands for the density with this share of the new observation."""
    new = jax.vmap(jax.value_and_grad(lambda x: problem.log_new(kinds, x)))
    points = cloud[:num]
    seen = see(cloud, None, new)
    at, fields, told = fields_of(seen, points, new, jnp.arange(num))
    old = jax.vmap(jax.grad(lambda x: problem.log_before(kinds, x)))(points)
    values, scores = new(points)
    target = seen.frame.covectors(old + share * scores)
    affine = seen.mean_score + 0.5 * at @ seen.curvature
    own = 0.5 * jnp.trace(seen.curvature) + jnp.sum(target * affine, axis=1) + values - seen.level
    each = traces(fields) + jnp.einsum("nd,nkd->nk", target, fields.vectors)
    rate = _rate(schedule(seen).sharpness, share)
    return Equations(invariants(fields, told), own, seen.strength * each, seen.strength, rate)


def _rate(sharpness: Scalar, share: Scalar) -> Scalar:
    """dt/dτ of the time schedule t(τ) = ((1 + λ)^τ − 1)/λ at t = share, where the cloud now sees the observation with
    the sharpness λ/(1 + λt), as that of a Gaussian would be."""
    at_first = sharpness / jnp.maximum(1 - sharpness * share, 0.1)
    return jnp.minimum(jnp.log1p(at_first) / sharpness, 1.0)


def residuals(velocity: EquivariantVelocity, found: Equations) -> Float[Array, " n"]:
    coefficients, changes = velocity.coefficients(found.given)
    r = found.own + jnp.sum(coefficients * found.by_coefficient, axis=1) + found.size * changes
    return r - jnp.median(r)


def loss(velocity: EquivariantVelocity, found: Equations) -> Scalar:
    """log(1 + 4 E r²), r in nats over the whole flow: about what the ESS loses."""
    r = found.rate * residuals(velocity, found)
    r = LARGEST * jnp.tanh(r / LARGEST)
    return jnp.log1p(WORTH * jnp.mean(r**2))


def usable(found: Equations) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(found)]))
