"""Steps of an affine velocity in closed form: exact for quadratic likelihoods whatever their sharpness, where a solver
needs many steps.

In the frame of a set N(0, I), the likelihood ū·w − ½ wᵀMw at power s leaves the precision I + sM and the mean
(I + sM)⁻¹ sū, and the flow between is w ↦ (I + sM)^(−½) w + (I + sM)⁻¹ sū. Other likelihoods are seen as the quadratic
whose mean slope and mean curvature over the set are theirs: half a step first, then the whole step with what is seen
from there, which makes the error of second order in the step.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.flow.likelihood import Likelihood
from pfbr.flow.velocities.affine import AffineVelocity, TimeSchedule
from pfbr.particles.whitening import Whitening
from pfbr.typing import Matrix, PerParticle, Point, Points, Scalar, Support

LEAST = 0.5  # of 1 + sλ: where the likelihood curves upwards a step may thin the precision to half, and less and less
FARTHEST = 4.0  # e-foldings below that: a step may not throw points out of the range of float32
LINEAR = 1e-4  # of the scores: what a quadratic leaves of them, in posterior standard deviations of the mean
SHARP = 100.0  # scores in standard deviations: beyond, later steps mend what rounding does to the first
CLOSE = 1e-3  # eigenvalues nearer than this, relative to their size, have a derivative instead of a quotient


def affine_steps(
    velocity: AffineVelocity,
    context: TimeSchedule,
    likelihood: Likelihood,
    points: Points,
    log_density: PerParticle,
    support: Support | None,
    *,
    steps: int,
    reverse: bool,
) -> tuple[Points, PerParticle]:
    """The flow from t = 0 to 1, or back, in `steps` steps of the velocity's own time schedule, or in one where that is
    exact."""
    ticks = jnp.linspace(0.0, 1.0, steps + 1, dtype=points.dtype)
    times = jax.vmap(lambda tau: velocity.schedule(context, tau))(ticks[::-1] if reverse else ticks)
    frame, mean_score, curvature, misfit = velocity.quadratic(points if support is None else support, likelihood)

    def at_once():
        go = affine_map(frame, mean_score, curvature, times[-1] - times[0])
        return go(points), log_density - go.log_det

    @jax.checkpoint
    def step(state, width):
        points, log_density, support = state
        seen_by = points if support is None else support
        frame, mean_score, curvature = velocity.tangent(seen_by, likelihood)
        half = affine_map(frame, mean_score, curvature, 0.5 * width)
        mean_score, curvature = seen_from(frame, *velocity.tangent(half(seen_by), likelihood))
        go = affine_map(frame, mean_score, curvature, width)
        return (go(points), log_density - go.log_det, None if support is None else go(support)), None

    def in_steps():
        return jax.lax.scan(step, (points, log_density, support), jnp.diff(times))[0][:2]

    return jax.lax.cond((misfit < LINEAR) & (context.sharpness < SHARP), at_once, in_steps)


class AffineMap(eqx.Module):
    """w ↦ w root + shift in a frame."""

    frame: Whitening
    root: Matrix
    shift: Point

    def __call__(self, points: Points) -> Points:
        # the difference is added, so that a map that is the identity moves nothing by rounding
        w = self.frame.whiten(points)
        return points + self.frame.vectors(w @ (self.root - jnp.eye(self.root.shape[0], dtype=w.dtype)) + self.shift)

    @property
    def log_det(self) -> Scalar:
        return jnp.linalg.slogdet(self.root)[1]


def affine_map(frame: Whitening, mean_score: Point, curvature: Matrix, width: Scalar) -> AffineMap:
    """The map of one step over `width` of a log likelihood with this slope and minus this curvature."""
    root = inverse_root(width * curvature)
    return AffineMap(frame, root, root @ (root @ (width * mean_score)))


def seen_from(frame: Whitening, other: Whitening, mean_score: Point, curvature: Matrix) -> tuple[Point, Matrix]:
    """Slope at the mean and curvature of the same quadratic, in another frame."""
    turn = other.inverse_scale @ frame.scale
    curvature = turn.T @ curvature @ turn
    return turn.T @ mean_score + curvature @ frame.whiten(other.mean), curvature


@jax.custom_jvp
def inverse_root(matrix: Matrix) -> Matrix:
    """(I + S)^(−½) of a symmetric matrix, also where S is below −½: 1 + λ is then continued by a positive function."""
    return _spectral(matrix)[0]


@inverse_root.defjvp
def _inverse_root_jvp(primals, tangents):
    # Daleckii and Krein: quotients of differences in the basis of the eigenvectors. The derivative of eigenvectors,
    # which does not exist where eigenvalues are equal, is never needed.
    root, values, vectors = _spectral(primals[0])
    apart = values[:, None] - values[None, :]
    close = jnp.abs(apart) <= CLOSE * (1 + jnp.abs(values)[:, None] + jnp.abs(values)[None, :])
    f = _of_eigenvalue(values)
    slope = jax.vmap(jax.vmap(jax.grad(_of_eigenvalue)))(0.5 * (values[:, None] + values[None, :]))
    quotient = jnp.where(close, slope, (f[:, None] - f[None, :]) / jnp.where(close, 1.0, apart))
    tangent = 0.5 * (tangents[0] + tangents[0].T)
    return root, vectors @ (quotient * (vectors.T @ tangent @ vectors)) @ vectors.T


def _spectral(matrix: Matrix) -> tuple[Matrix, PerParticle, Matrix]:
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * _of_eigenvalue(values)) @ vectors.T, values, vectors


def _of_eigenvalue(value):
    plain = value > LEAST - 1
    low = jnp.where(plain, LEAST - 1, value)  # keeps the exponential finite where it is not taken
    fewer = jnp.maximum((low + 1 - LEAST) / LEAST, -FARTHEST)
    return 1 / jnp.sqrt(jnp.where(plain, 1 + value, LEAST * jnp.exp(fewer)))
