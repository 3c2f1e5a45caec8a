"""Linear and Gaussian so far: the exact law is carried in closed form, and the cloud mapped with it.

As long as prior and rows had scores that are linear over the cloud, the posterior *is* its law N(m, S): a row
updates it exactly (Kalman), its evidence is a Gaussian integral, and an affine map takes the cloud along with equal
weights. What is left of the scores after a linear fit, in the frame of the new law, is added up; above a fiftieth of a
standard deviation this mode is left for good, and the kept rows take over.
"""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import solve_positive
from pfbr.inference.adaptive.static.target import Target
from pfbr.particles.whitening import Whitening, whitening_of

MOST_MISFIT = 0.02  # sum over rows of the scores' unexplained rms: the error of the mean that it may cost, in sd


class LinearScore(eqx.Module):
    """score ≈ at_zero − curvature u, over the cloud."""

    at_zero: Array
    curvature: Array
    left: Array  # (n, d) what is not linear


class Conjugate(eqx.Module):
    points: Array
    law: Whitening
    log_predictive: Array
    misfit: Array


def linear_score(white: Array, scores: Array) -> LinearScore:
    d = white.shape[1]
    centre, mean = jnp.mean(white, 0), jnp.mean(scores, 0)
    u = white - centre
    spread = u.T @ u
    ridge = 4 * d * jnp.finfo(white.dtype).eps * jnp.trace(spread) / d * jnp.eye(d, dtype=white.dtype)
    curvature = -solve_positive(spread + ridge, u.T @ (scores - mean))
    curvature = 0.5 * (curvature + curvature.T)
    at_zero = mean + centre @ curvature
    return LinearScore(at_zero, curvature, scores - (at_zero - white @ curvature))


def updated(law: Whitening, white: Array, linear: LinearScore, prior_precision: Array):
    """Root, mean, log determinant of N(0, prior_precision⁻¹) times the likelihood; what is not linear, in its frame."""
    values, vectors = jnp.linalg.eigh(prior_precision + linear.curvature)
    fine = values[0] > 0
    values = jnp.where(fine, values, 1)
    root = (vectors / jnp.sqrt(values)) @ vectors.T
    mean = root @ (root @ linear.at_zero)
    misfit = jnp.sqrt(jnp.mean((linear.left @ root) ** 2))
    misfit = jnp.where(fine & jnp.isfinite(misfit), misfit, jnp.inf)
    return root, mean, -0.5 * jnp.sum(jnp.log(values)), misfit


def prior_as_law(target: Target, points: Array) -> Conjugate:
    """Where the prior is Gaussian: its exact law, and the cloud shifted and turned to have exactly its moments."""
    n = points.shape[0]
    frame = whitening_of(points, jnp.full(n, 1 / n, points.dtype), shrink=False)
    u = frame.whiten(points)
    linear = linear_score(u, frame.covectors(jax.vmap(jax.grad(target.log_prior))(points)))
    root, mean, _, misfit = updated(frame, u, linear, jnp.zeros_like(linear.curvature))
    law = frame.inner(mean, root)
    misfit = jnp.where(law.exists, misfit, jnp.inf)
    matched = misfit <= MOST_MISFIT
    # u has mean 0 and covariance I over the cloud, so that this has the law's
    moved = frame.restore(u @ root + mean)
    law = jax.tree.map(lambda a, b: jnp.where(matched, a, b), law, frame)
    return Conjugate(jnp.where(matched, moved, points), law, jnp.zeros((), points.dtype), misfit)


def is_law(target: Target, law: Whitening, points: Array) -> Array:
    """Whether the prior's values at these draws of it are those of the law, at every single one."""
    square = jnp.sum(law.whiten(points) ** 2, axis=1)
    off = jax.vmap(target.log_prior)(points) + 0.5 * square
    return jnp.all(jnp.abs(off - jnp.median(off)) <= 0.05 + 0.02 * square)  # False for NaN and infinities


def values_agree(white: Array, values: Array, linear: LinearScore) -> Array:
    """Whether values relative to the centre are the quadratic that the scores describe. Steps and hard edges have the
    scores of a flat likelihood."""
    off = values - (white @ linear.at_zero - 0.5 * jnp.sum((white @ linear.curvature) * white, axis=1))
    allowed = 0.05 + 1e-3 * jnp.mean(jnp.abs(values))
    return jnp.isfinite(allowed) & (jnp.mean(jnp.abs(off)) <= allowed)


def conjugate_update(target: Target, points: Array, law: Whitening, row: Any) -> Conjugate:
    u = law.whiten(points)
    values, scores = jax.vmap(jax.value_and_grad(lambda x: target.log_new(x, row)))(points)
    linear = linear_score(u, law.covectors(scores))
    root, mean, log_det, misfit = updated(law, u, linear, jnp.eye(u.shape[1], dtype=u.dtype))
    # ∫ N(u; 0, I) exp(ℓ(0) + g·u − ½ uᵀMu) du
    middle = target.log_new(law.mean, row)
    log_predictive = middle + 0.5 * linear.at_zero @ mean + log_det
    new = law.inner(mean, root)
    fine = new.exists & jnp.isfinite(log_predictive) & values_agree(u, values - middle, linear)
    # the mean is rounded at every row, and nothing kept puts that right: an offset of many sd cannot stay here long
    misfit = jnp.where(fine, misfit + new.rounding, jnp.inf)
    return Conjugate(law.restore(u @ root + mean), new, log_predictive, misfit)
