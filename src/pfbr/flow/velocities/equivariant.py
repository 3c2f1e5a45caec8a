"""One velocity for every model and every number of unknowns: the affine flow, and a learned correction that turns with
the cloud."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.flow.fields.galerkin import galerkin_field, solve
from pfbr.flow.fields.kernels import kernel_fields
from pfbr.flow.fields.plain import plain_fields
from pfbr.flow.fields.seen import Fields, Seen, ValuesAndScores, active_metric, joined, look_at, see
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.affine import TimeSchedule
from pfbr.flow.velocities.base import Velocity
from pfbr.typing import Key, PerParticle, Points, Scalar, Support

VECTORS = 11
NEAR, NEAR_ACTIVE = 0.9, 0.5  # widths of the kernels, in standard deviations a dimension
SCALARS = 5 + 6  # of a point, and of the whole cloud


class Invariants(eqx.Module):
    """What the network sees of each point, all of it between −1 and 1, and how that changes along each vector."""

    values: Float[Array, "n i"]
    changes: Float[Array, "n k i"]


class EquivariantVelocity(Velocity):
    """v(w) = ū + ½ C w + m Σ_k c_k(invariants) e_k(w) in the frame of the current particles.

    The vectors e_k turn with the frame (`flow.fields`); their coefficients come from a small network of what does not
    turn: the inner products of the vectors, log likelihood and density at the point, and a few numbers of the cloud.
    m is the size of the scores, since the wanted velocity is linear in the log likelihood: a flat one
    moves nothing. The weights know nothing of the dimension. Without training the correction is zero.

    The divergence is exact: each field brings its Jacobian, and the network is differentiated along the vectors.
    """

    first: Float[Array, "i h"]
    first_bias: Float[Array, " h"]
    second: Float[Array, "h h"]
    second_bias: Float[Array, " h"]
    last: Float[Array, "h k"]
    last_bias: Float[Array, " k"]

    def __init__(self, key: Key, *, width: int = 64):
        inputs = VECTORS * (VECTORS + 1) // 2 + SCALARS
        keys = jax.random.split(key, 2)
        self.first = jax.random.normal(keys[0], (inputs, width)) / inputs**0.5
        self.first_bias = jnp.zeros(width)
        self.second = jax.random.normal(keys[1], (width, width)) / width**0.5
        self.second_bias = jnp.zeros(width)
        self.last = jnp.zeros((width, VECTORS))
        self.last_bias = jnp.zeros(VECTORS)

    def prepare(self, key: Key, support: Support, likelihood: Likelihood) -> TimeSchedule:
        return schedule(see(support, None, likelihood.values_and_scores))

    def __call__(
        self, t: Scalar, points: Points, support: Support, context: TimeSchedule, likelihood: Likelihood
    ) -> tuple[Points, PerParticle]:
        own = jnp.arange(points.shape[0]) if points is support else None
        velocity, divergence = self.field(points, support, None, likelihood.values_and_scores, own)
        rate = context.rate(t)
        return rate * velocity, rate * divergence

    def schedule(self, context: TimeSchedule, tau: Scalar) -> Scalar:
        return context.time(tau)

    def field(
        self,
        points: Points,
        support: Support,
        weights: Float[Array, " s"] | None,
        values_and_scores: ValuesAndScores,
        own: Int[Array, " n"] | None,
    ) -> tuple[Points, PerParticle]:
        """Velocity and divergence at points, of a weighted cloud; `own` says which of its particles they are."""
        seen = see(support, weights, values_and_scores)
        whitened, divergence = self.in_frame(seen, *fields_of(seen, points, values_and_scores, own))
        return seen.frame.vectors(whitened), divergence

    def in_frame(self, seen: Seen, at: Points, fields: Fields, told: Array) -> tuple[Points, PerParticle]:
        coefficients, changes = self.coefficients(invariants(fields, told))
        affine = seen.mean_score + 0.5 * at @ seen.curvature
        correction = jnp.einsum("nk,nkd->nd", coefficients, fields.vectors)
        stretching = jnp.sum(coefficients * traces(fields), axis=1) + changes
        return affine + seen.strength * correction, 0.5 * jnp.trace(seen.curvature) + seen.strength * stretching

    def coefficients(self, given: Invariants) -> tuple[Float[Array, "n k"], PerParticle]:
        """c_k, and Σ_k ∇c_k · e_k."""

        def one(values, changes):
            along = lambda change: jax.jvp(self._network, (values,), (change,))
            coefficients, changed = jax.vmap(along, out_axes=(None, 0))(changes)
            return coefficients, jnp.trace(changed)

        return jax.vmap(one)(given.values, given.changes)

    def _network(self, h: Float[Array, " i"]) -> Float[Array, " k"]:
        h = jnp.tanh(h @ self.first + self.first_bias)
        h = jnp.tanh(h @ self.second + self.second_bias)
        return h @ self.last + self.last_bias


def traces(fields: Fields) -> Float[Array, "n k"]:
    return jnp.trace(fields.jacobians, axis1=2, axis2=3)


def invariants(fields: Fields, told: Array) -> Invariants:
    vectors = fields.vectors
    n = vectors.shape[0]
    first, second = np.triu_indices(VECTORS)
    moved = jnp.einsum("naij,nkj->nkai", fields.jacobians, vectors)  # J_a e_k
    changes = jnp.einsum("nkai,nbi->nkab", moved, vectors)
    changes = (changes + changes.swapaxes(2, 3))[:, :, first, second]
    gram = jnp.tanh((vectors @ vectors.swapaxes(1, 2))[:, first, second])
    scalars = jnp.tanh(fields.scalars)
    along = jnp.einsum("nsi,nki->nks", fields.gradients, vectors)
    fixed = jnp.zeros((n, VECTORS, told.shape[0]), gram.dtype)
    return Invariants(
        jnp.concatenate([gram, scalars, jnp.broadcast_to(told, (n, *told.shape))], axis=1),
        jnp.concatenate([(1 - gram**2)[:, None] * changes, (1 - scalars**2)[:, None] * along, fixed], axis=2),
    )


def schedule(seen: Seen) -> TimeSchedule:
    return TimeSchedule(jnp.clip(jax.lax.stop_gradient(seen.sharpness), 1e-3, 1e6))


def fields_of(
    seen: Seen, points: Points, values_and_scores: ValuesAndScores, own: Int[Array, " n"] | None
) -> tuple[Points, Fields, Array]:
    """The points in the frame of the cloud, all fields there, and numbers that tell of the whole cloud."""
    at = look_at(seen, points, values_and_scores)
    d = points.shape[1]
    eye = jnp.eye(d, dtype=points.dtype)
    active = active_metric(seen)
    found = solve(seen)
    fields = joined(
        plain_fields(seen, at),
        galerkin_field(seen, at, found),
        kernel_fields(seen, at, eye / d, NEAR, own),
        kernel_fields(seen, at, active, NEAR_ACTIVE, own),
    )
    return at.points, fields, _told(seen, active, found.explained)


def _told(seen: Seen, active: Array, explained: Scalar) -> Array:
    d = active.shape[0]
    shape = seen.points @ seen.mean_score + 0.5 * jnp.sum((seen.points @ seen.curvature) * seen.points, axis=1)
    left = seen.values - shape
    misfit = jnp.sqrt(seen.weights @ (left - seen.weights @ left) ** 2 + 1e-12) / seen.spread
    return jnp.stack(
        [
            jnp.tanh(jnp.log(seen.size)),
            jnp.full((), 1 / d, active.dtype),
            jnp.trace(seen.curvature) / seen.size / d**0.5,
            jnp.tanh(misfit),
            jnp.tanh(explained),
            jnp.sum(active**2),  # 1 over the number of directions in which the likelihood varies
        ]
    )
