"""What the affine flow leaves undone, solved for in a few dozen functions: a gradient field, from averages alone.

A velocity v = ∇Φ takes the cloud along q_t ∝ q exp(tℓ) if E[∇Φ·∇φ] = E[(ℓ − Eℓ) φ] for every function φ. No density is
needed for that. Here Φ is sought among functions of the two coordinates in which the likelihood varies most and of the
log likelihood itself, where an observation that looks in one or two directions has nearly all of its solution.
"""

import itertools

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.fields.seen import At, Fields, Seen, active_metric
from pfbr.typing import PerParticle, Points

DIRECTIONS, DEGREE = 2, 3
RIDGE = 0.02  # of the diagonal: a cloud of a hundred must not fit its own noise
SOFT = 3.0  # standard deviations beyond which coordinates count less and less


class Galerkin(eqx.Module):
    """Φ(s) = coefficients · φ(s), s = (coordinates in the directions, log likelihood in units of its spread)."""

    directions: Float[Array, "a d"]
    coefficients: Float[Array, " b"]
    explained: Float[Array, ""]  # share of the variance of ℓ that the field accounts for


def functions(s: Float[Array, " c"]) -> Float[Array, " b"]:
    """The basis: polynomials of softened coordinates, and the log likelihood with its products."""
    y, z = SOFT * jnp.tanh(s[:-1] / SOFT), jnp.tanh(0.5 * s[-1])
    powers = jnp.stack([jnp.ones_like(y), y, y**2, y**3])
    exponents = np.array([p for p in itertools.product(range(DEGREE + 1), repeat=len(y)) if 0 < sum(p) <= DEGREE])
    polynomials = powers[exponents[:, 0], 0]
    for place in range(1, len(y)):
        polynomials = polynomials * powers[exponents[:, place], place]
    return jnp.concatenate([polynomials, jnp.stack([z, z**2]), z * y])


def coordinates(directions: Float[Array, "a d"], seen: Seen, points: Points, values: PerParticle) -> Array:
    return jnp.concatenate([points @ directions.T, values[:, None] / seen.spread], axis=1)


def gradients_of(directions: Float[Array, "a d"], seen: Seen, scores: Points) -> Float[Array, "n c d"]:
    """Of the coordinates at each point."""
    n = scores.shape[0]
    return jnp.concatenate(
        [jnp.broadcast_to(directions, (n, *directions.shape)), scores[:, None] / seen.spread], axis=1
    )


def solve(seen: Seen) -> Galerkin:
    d = seen.points.shape[1]
    a = min(DIRECTIONS, d)
    second = active_metric(seen)
    # the slope of eigenvectors does not exist where eigenvalues are equal; the directions are chosen, not learned
    directions = jax.lax.stop_gradient(jnp.linalg.eigh(second)[1][:, ::-1][:, :a].T)
    s = coordinates(directions, seen, seen.points, seen.values)
    slopes = gradients_of(directions, seen, seen.scores)
    phi = jax.vmap(functions)(s)
    by_coordinate = jax.vmap(jax.jacfwd(functions))(s)  # n b c
    grads = by_coordinate @ slopes  # n b d
    flat = (jnp.sqrt(seen.weights)[:, None, None] * grads).transpose(0, 2, 1).reshape(-1, phi.shape[1])
    matrix = flat.T @ flat
    affine = seen.mean_score + 0.5 * seen.points @ seen.curvature
    wanted = seen.weights @ (seen.values[:, None] * (phi - seen.weights @ phi))
    wanted = wanted - seen.weights @ jnp.einsum("nbd,nd->nb", grads, affine)
    scale = jnp.sqrt(jnp.diagonal(matrix) + 1e-12)
    scaled = matrix / scale[:, None] / scale + RIDGE * jnp.eye(len(scale), dtype=matrix.dtype)
    solved = jax.scipy.linalg.solve(scaled, wanted / scale, assume_a="pos") / scale
    solved = jnp.where(jnp.all(jnp.isfinite(solved)), solved, 0)
    return Galerkin(directions, solved, jnp.sqrt(jnp.abs(solved @ wanted)) / seen.size)


def galerkin_field(seen: Seen, at: At, found: Galerkin) -> Fields:
    """∇Φ/m with its Jacobian, and no scalar."""
    s = coordinates(found.directions, seen, at.points, at.values)
    slopes = gradients_of(found.directions, seen, at.scores)
    potential = lambda s: found.coefficients @ functions(s)
    first, second = jax.vmap(jax.grad(potential))(s), jax.vmap(jax.hessian(potential))(s)
    vectors = jnp.einsum("nc,ncd->nd", first, slopes) / seen.size
    curved = jnp.einsum("nci,nce,nej->nij", slopes, second, slopes)
    curved = (curved + first[:, -1, None, None] * at.hessians / seen.spread) / seen.size
    empty = jnp.zeros((at.points.shape[0], 0), s.dtype)
    return Fields(vectors[:, None], curved[:, None], empty, jnp.zeros((*empty.shape, at.points.shape[1]), s.dtype))
