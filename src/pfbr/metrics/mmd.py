"""Maximum mean discrepancy: how differently two samples look through a kernel.

Gretton et al., "A kernel two-sample test" (2012). The kernels and their defaults are scikit-learn's, gamma = 1/d.
"""

from collections.abc import Callable

from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.errors import InputError
from pfbr.metrics.scores import Estimate
from pfbr.particles.density import squared_distances
from pfbr.particles.particles import Particles
from pfbr.typing import Points

OtherPoints = Float[Array, "m d"]
Gram = Float[Array, "n m"]


def rbf(a: Points, b: OtherPoints) -> Gram:
    """exp(−‖a − b‖² / d)"""
    return jnp.exp(-squared_distances(a, b) / a.shape[1])


def laplacian(a: Points, b: OtherPoints) -> Gram:
    """exp(−‖a − b‖₁ / d)"""
    return jnp.exp(-jnp.sum(jnp.abs(a[:, None] - b[None]), axis=-1) / a.shape[1])


def polynomial(a: Points, b: OtherPoints) -> Gram:
    """(a·b / d + 1)³"""
    return (a @ b.T / a.shape[1] + 1.0) ** 3


def sigmoid(a: Points, b: OtherPoints) -> Gram:
    """tanh(a·b / d + 1); not positive definite, so that its MMD² may be negative even without noise"""
    return jnp.tanh(a @ b.T / a.shape[1] + 1.0)


def cosine(a: Points, b: OtherPoints) -> Gram:
    """a·b / (‖a‖ ‖b‖)"""
    unit_a = a / jnp.maximum(jnp.linalg.norm(a, axis=1, keepdims=True), 1e-30)
    unit_b = b / jnp.maximum(jnp.linalg.norm(b, axis=1, keepdims=True), 1e-30)
    return unit_a @ unit_b.T


KERNELS: dict[str, Callable[[Points, OtherPoints], Gram]] = {
    "rbf": rbf,
    "laplacian": laplacian,
    "polynomial": polynomial,
    "sigmoid": sigmoid,
    "cosine": cosine,
}


def mmd2(particles: Particles, truth_draws: Points, kernel: str = "rbf") -> Estimate:
    """MMD² between weighted particles and true draws, as a U-statistic: no point is compared with itself.

    The error is that of two independent samples: the first-order part of the U-statistic and the second-order part
    that is left where both have one law.
    """
    if kernel not in KERNELS:
        raise InputError(f"`kernel` must be one of {', '.join(KERNELS)}; got {kernel!r}.")
    gram = KERNELS[kernel]
    w, points = jnp.exp(particles.log_weights), particles.points
    m = truth_draws.shape[0]
    within_p, within_t, between = gram(points, points), gram(truth_draws, truth_draws), gram(points, truth_draws)

    def without_diagonal(k):
        return k - jnp.diag(jnp.diagonal(k))

    collisions = jnp.sum(w**2)  # 1 / effective number of particles
    seen_by_p = without_diagonal(within_p) @ w / jnp.maximum(1.0 - w, 1e-12)
    seen_by_t = jnp.sum(without_diagonal(within_t), axis=1) / (m - 1)
    own = w @ without_diagonal(within_p) @ w / jnp.maximum(1.0 - collisions, 1e-12)
    value = own + jnp.mean(seen_by_t) - 2.0 * jnp.mean(w @ between)

    lean_p = seen_by_p - jnp.mean(between, axis=1)
    lean_t = seen_by_t - w @ between
    first = 4.0 * (jnp.sum(w**2 * (lean_p - w @ lean_p) ** 2) + jnp.var(lean_t) / m)
    rows = jnp.mean(within_t, axis=1)
    centred = within_t - rows[:, None] - rows[None, :] + jnp.mean(rows)
    second = 2.0 * (collisions + 1.0 / m) ** 2 * jnp.mean(centred**2)
    # the first part, computed from the same draws, is too large by twice the second on average
    return Estimate(value, jnp.sqrt(jnp.maximum(first - 2.0 * second, 0.0) + second))
