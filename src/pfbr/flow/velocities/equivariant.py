"""One velocity for every model and every number of unknowns: the affine flow, and a learned correction that turns with
the cloud."""

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.flow.fields.active import Active, Fields, active_of, joined, look_at, summed
from pfbr.flow.fields.galerkin import galerkin_field, solve
from pfbr.flow.fields.kernels import kernel_fields
from pfbr.flow.fields.plain import plain_fields
from pfbr.flow.fields.seen import Seen, ValuesAndScores, see
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.affine import TimeSchedule
from pfbr.flow.velocities.base import Velocity
from pfbr.typing import Key, PerParticle, Points, Scalar, Support

VECTORS = 9
SCALARS = 4 + 7  # of a point, and of the whole cloud


class Given(eqx.Module):
    """All that the network and its weights do not decide, at n points: what it sees, how that changes along the active
    directions, and the vectors that its numbers multiply."""

    inputs: Float[Array, "i n"]  # all between −1 and 1
    slopes: Float[Array, "i r n"]
    vectors: Float[Array, "k r n"]
    jacobians: Float[Array, "k r r n"]
    size: Scalar  # standard deviations that a coefficient of one stands for


class EquivariantVelocity(Velocity):
    """v(w) = ū + ½ C w + m Σ_k c_k(invariants) e_k(w) in the frame of the current particles.

    The vectors e_k turn with the frame and lie in the few directions in which the observation has anything to say
    (`flow.fields`); their coefficients come from a small network of what does not turn: the inner products of the
    vectors, log likelihood and density at the point, and a few numbers of the cloud. m is the size of the scores, since
    the wanted velocity is linear in the log likelihood: a flat one moves nothing. The weights know nothing of the
    dimension. Without training the correction is zero.

    It is made for steps in closed form (`flow.kicks`), where the correction is one kick a step whose determinant is
    exact: each field brings its Jacobian, and the network is differentiated along the directions.
    """

    first: Float[Array, "i h"]
    first_bias: Float[Array, " h"]
    second: Float[Array, "h h"]
    second_bias: Float[Array, " h"]
    last: Float[Array, "h k"]
    last_bias: Float[Array, " k"]

    def __init__(self, key: Key, *, width: int = 32):
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
        seen = see(support, None, likelihood.values_and_scores)
        active, given = given_at(seen, points, likelihood.values_and_scores, own, jnp.zeros((), points.dtype))
        kicks, jacobians = self.kicks(given)
        affine = seen.mean_score + 0.5 * seen.frame.whiten(points) @ seen.curvature
        velocity = seen.frame.vectors(affine + seen.strength * kicks.T @ active.directions)
        stretching = 0.5 * jnp.trace(seen.curvature) + seen.strength * jnp.trace(jacobians)
        rate = context.rate(t)
        return rate * velocity, rate * stretching

    def schedule(self, context: TimeSchedule, tau: Scalar) -> Scalar:
        return context.time(tau)

    def kicks(self, given: Given) -> tuple[Float[Array, "r n"], Float[Array, "r r n"]]:
        """Σ_k c_k e_k and its Jacobian, in the active directions."""
        h, slopes = given.inputs, given.slopes
        r, n = slopes.shape[1:]
        through = lambda weight, slopes: (weight.T @ slopes.reshape(-1, r * n)).reshape(-1, r, n)
        for weight, bias in ((self.first, self.first_bias), (self.second, self.second_bias)):
            h = jnp.tanh(weight.T @ h + bias[:, None])
            slopes = (1 - h**2)[:, None] * through(weight, slopes)
        coefficients = self.last.T @ h + self.last_bias[:, None]
        changes = through(self.last, slopes)  # k r n
        vectors = given.vectors
        jacobians = coefficients[:, None, None] * given.jacobians + vectors[:, :, None] * changes[:, None]
        return summed(coefficients[:, None] * vectors, 0), summed(jacobians, 0)


def schedule(seen: Seen) -> TimeSchedule:
    return TimeSchedule(jnp.clip(jax.lax.stop_gradient(seen.sharpness), 1e-3, 1e6))


def given_at(
    seen: Seen, points: Points, values_and_scores: ValuesAndScores, own: Int[Array, " n"] | None, width: Scalar
) -> tuple[Active, Given]:
    """The active directions of a cloud, and all that is given at points, for a step over this share of the observation.

    `own` says which particles of the cloud the points are; all of them in their order then.
    """
    active = active_of(seen)
    at = look_at(seen, active, points, values_and_scores, own is not None)
    found = solve(seen, active)
    parts = plain_fields(seen, active, at), galerkin_field(seen, at, found), kernel_fields(seen, active, at, own)
    fields = jax.lax.optimization_barrier(joined(*jax.lax.optimization_barrier(parts)))
    size = width * seen.strength
    told = _told(seen, active, found.explained, size)
    return active, jax.lax.optimization_barrier(_given(fields, told, size / (1 + 0.5 * size)))


def _given(fields: Fields, told: Array, size: Scalar) -> Given:
    vectors = fields.vectors
    r, n = vectors.shape[1:]
    # inner products of each with itself and those after it, and how they change along the axes; by slices: looking
    # rows up by their numbers is slow
    jacobians = fields.jacobians
    products = [summed(vectors[a] * vectors[a:], 1) for a in range(VECTORS)]
    changes = [
        summed(jacobians[a] * vectors[a:, :, None] + jacobians[a:] * vectors[a, :, None], 1) for a in range(VECTORS)
    ]
    gram, gram_root = _soft(jnp.concatenate(products))
    scalars, scalar_root = _soft(fields.scalars)
    return Given(
        jnp.concatenate([gram, scalars, jnp.broadcast_to(told[:, None], (len(told), n))]),
        jnp.concatenate(
            [
                gram_root[:, None] * jnp.concatenate(changes),
                scalar_root[:, None] * fields.gradients,
                jnp.zeros((len(told), r, n), gram.dtype),
            ]
        ),
        vectors,
        fields.jacobians,
        size,
    )


def _soft(x: Array) -> tuple[Array, Array]:
    """x/√(1 + x²), and its slope."""
    root = jax.lax.rsqrt(1 + x**2)
    return x * root, root**3


def _told(seen: Seen, active: Active, explained: Scalar, size: Scalar) -> Array:
    d = seen.points.shape[1]
    shape = seen.points @ seen.mean_score + 0.5 * jnp.sum((seen.points @ seen.curvature) * seen.points, axis=1)
    left = seen.values - shape
    misfit = jnp.sqrt(seen.weights @ (left - seen.weights @ left) ** 2 + 1e-12) / seen.spread
    return jnp.stack(
        [
            jnp.tanh(jnp.log(seen.size)),
            jnp.full((), 1 / d, size.dtype),
            jnp.trace(seen.curvature) / seen.size / d**0.5,
            jnp.tanh(misfit),
            jnp.tanh(explained),
            jnp.sum(active.metric**2),  # 1 over the number of directions that count
            jnp.tanh(size),
        ]
    )


def log_determinant(matrix: Float[Array, "r r n"]) -> PerParticle:
    """Of I + matrix, for up to three directions written out: many small factorisations are slow."""
    r = matrix.shape[0]
    a = matrix + jnp.eye(r, dtype=matrix.dtype)[:, :, None]
    if r == 1:
        determinant = a[0, 0]
    elif r == 2:
        determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    else:
        minor = lambda i, j: a[1, i] * a[2, j] - a[1, j] * a[2, i]
        determinant = a[0, 0] * minor(1, 2) - a[0, 1] * minor(0, 2) + a[0, 2] * minor(0, 1)
    return jnp.log(jnp.maximum(jnp.abs(determinant), 1e-6))
