"""What the affine flow leaves undone, solved for in a few dozen functions: a gradient field, from averages alone.

A velocity v = ∇Φ takes the cloud along q_t ∝ q exp(tℓ) if E[∇Φ·∇φ] = E[(ℓ − Eℓ) φ] for every function φ. No density is
needed for that. Here Φ is sought among functions of the two coordinates in which the likelihood varies most and of the
log likelihood itself, where an observation that looks in one or two directions has nearly all of its solution.
"""

import itertools
import math

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.flow.fields.active import Active, At, Fields, summed
from pfbr.flow.fields.seen import Seen
from pfbr.typing import PerParticle

DIRECTIONS, DEGREE = 2, 3
RIDGE = 0.02  # of the diagonal: a cloud of a hundred must not fit its own noise
SOFT = 3.0  # standard deviations beyond which coordinates count less and less


class Galerkin(eqx.Module):
    """Φ(s) = coefficients · φ(s), s = (first coordinates, log likelihood in units of its spread)."""

    coefficients: Float[Array, " b"]
    explained: Float[Array, ""]  # share of the variance of ℓ that the field accounts for


def functions(s: Float[Array, "c n"]) -> Float[Array, "b n"]:
    """The basis: polynomials of softened coordinates, and the log likelihood with its products."""
    y, z = SOFT * jnp.tanh(s[:-1] / SOFT), jnp.tanh(0.5 * s[-1])
    powers = [jnp.ones_like(y), y, y**2, y**3]
    polynomials = []
    for exponents in itertools.product(range(DEGREE + 1), repeat=len(y)):
        if 0 < sum(exponents) <= DEGREE:
            factors = [powers[e][place] for place, e in enumerate(exponents) if e]
            polynomials.append(math.prod(factors[1:], start=factors[0]))
    return jnp.concatenate([jnp.stack([*polynomials, z, z**2]), z * y])


def slopes_of(function, s: Float[Array, "c n"]):
    """Derivatives along each coordinate, on a leading axis: at all points at once."""
    units = jnp.eye(len(s), dtype=s.dtype)[:, :, None]
    return jnp.stack([jax.jvp(function, (s,), (jnp.broadcast_to(unit, s.shape),))[1] for unit in units])


def coordinates(seen: Seen, points: Float[Array, "r n"], values: PerParticle) -> Float[Array, "c n"]:
    return jnp.concatenate([points[:DIRECTIONS], values[None] / seen.spread])


def gradients_of(seen: Seen, scores: Float[Array, "r n"]) -> Float[Array, "c r n"]:
    """Of the coordinates at each point."""
    r, n = scores.shape
    eye = jnp.eye(r, dtype=scores.dtype)[:DIRECTIONS, :, None]
    return jnp.concatenate([jnp.broadcast_to(eye, (*eye.shape[:2], n)), scores[None] / seen.spread])


def solve(seen: Seen, active: Active) -> Galerkin:
    s = coordinates(seen, active.points.T, seen.values)
    slopes = gradients_of(seen, active.scores.T)
    phi = functions(s)
    grads = summed(slopes_of(functions, s)[:, :, None] * slopes[:, None], 0)  # b r n
    flat = (jnp.sqrt(seen.weights) * grads).reshape(len(phi), -1)
    matrix = flat @ flat.T
    affine = (active.mean_score + 0.5 * active.points @ active.curvature).T
    wanted = (phi - (phi @ seen.weights)[:, None]) @ (seen.weights * seen.values)
    wanted = wanted - summed(grads * affine, 1) @ seen.weights
    scale = jnp.sqrt(jnp.diagonal(matrix) + 1e-12)
    scaled = matrix / scale[:, None] / scale + RIDGE * jnp.eye(len(scale), dtype=matrix.dtype)
    solved = jax.scipy.linalg.solve(scaled, wanted / scale, assume_a="pos") / scale
    solved = jnp.where(jnp.all(jnp.isfinite(solved)), solved, 0)
    return Galerkin(solved, jnp.sqrt(jnp.abs(solved @ wanted)) / seen.size)


def galerkin_field(seen: Seen, at: At, found: Galerkin) -> Fields:
    """∇Φ/m with its Jacobian, and no scalar."""
    s = coordinates(seen, at.points, at.values)
    slopes = gradients_of(seen, at.scores)
    along = lambda s: slopes_of(lambda s: found.coefficients @ functions(s), s)
    first, second = along(s), slopes_of(along, s)
    vectors = summed(first[:, None] * slopes, 0) / seen.size
    half = summed(second[:, :, None] * slopes[None], 1)  # c r n
    curved = summed(slopes[:, :, None] * half[:, None], 0)
    curved = (curved + first[-1] * at.hessians / seen.spread) / seen.size
    r, n = at.points.shape
    return Fields(vectors[None], curved[None], jnp.zeros((0, n), s.dtype), jnp.zeros((0, r, n), s.dtype))
