"""From log densities to weights: the flow as the proposal of importance sampling, and what the weights say about it.

Every function returns log weights whose sum of exponentials estimates the evidence, so that 1/n is already in them.
A map F that does not depend on the points it moves makes the estimate unbiased; docs/trust.md says when it does not.
"""

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.particles.density import squared_distances
from pfbr.particles.pareto import pareto_k
from pfbr.particles.particles import Particles, ess
from pfbr.particles.whitening import whitening_of
from pfbr.typing import PerParticle, Points, Scalar

MAX_ANCHORS = 512  # of the continued density: its cost grows with their cube
KERNEL_WIDTH = 1.5  # in the frame of the anchors
REACH, FALL = 1.0, 0.25  # idem: how far from the nearest anchor a continuation goes, and how fast it falls after that
FITS, FARTHEST = 0.03, 10.0  # nats: a quadratic that leaves less than this is believed farther, up to so many times
NUGGET = 1e-4  # of the kernel matrix: float32 must invert it


def static_log_weights(log_target: PerParticle, log_density: PerParticle) -> PerParticle:
    """log p(x, O) − log q(x) − log n, for an unknown at rest; `log_target` is exact or continued (see below)."""
    return log_target - log_density - jnp.log(float(log_density.shape[0]))


def continued_log_density(anchors: Points, values: PerParticle, at: Float[Array, "m d"]) -> Float[Array, " m"]:
    """A log density known at the `anchors`, continued to the points `at`: how a past without memory is re-evaluated.

    A quadratic fitted to the values, exact for Gaussians, plus a Gaussian-kernel interpolation of what it leaves, in
    the frame of the anchors. Approximate: good between the anchors, a quadratic beyond them, as far as what it leaves
    is small among them (it errs with the third power of the distance), and then nothing.
    """
    step = max(1, anchors.shape[0] // MAX_ANCHORS)
    anchors, values = anchors[::step], values[::step]
    # an anchor that the observations rule out has no log density; it counts as far below the others
    alive = jnp.isfinite(values)
    lowest = jnp.min(jnp.where(alive, values, jnp.inf))
    values = jnp.where(alive, values, lowest - 5.0)
    frame = whitening_of(anchors)
    own, there = frame.whiten(anchors), frame.whiten(at)
    level = jnp.mean(values)
    n, d = own.shape
    crossed = 2 * (1 + d + d * (d + 1) // 2) <= n  # enough anchors for every product of two coordinates
    design = _quadratic(own, crossed=crossed)
    gram = design.T @ design + 1e-4 * jnp.eye(design.shape[1])
    weights = jax.scipy.linalg.solve(gram, design.T @ (values - level), assume_a="pos")
    left = values - level - design @ weights
    kernel = jnp.exp(-0.5 * squared_distances(own, own) / KERNEL_WIDTH**2) + NUGGET * jnp.eye(n)
    coefficients = jax.scipy.linalg.solve(kernel, left, assume_a="pos")
    apart = squared_distances(there, own)
    smooth = jnp.exp(-0.5 * apart / KERNEL_WIDTH**2) @ coefficients
    # a set that has collapsed has no kernel matrix to invert: the quadratic alone then
    value = level + _quadratic(there, crossed=crossed) @ weights + jnp.where(jnp.isfinite(smooth), smooth, 0.0)
    # a quadratic that opens upwards would draw chains away for ever: no higher than the anchors, and down far from them
    fit = jnp.cbrt(FITS / (jnp.sqrt(jnp.mean(left**2)) + 1e-9))
    beyond = jnp.maximum(jnp.sqrt(jnp.min(apart, axis=1)) - REACH * jnp.clip(fit, 1.0, FARTHEST), 0.0)
    return jnp.minimum(value, jnp.max(values) + 1.0) - 0.5 * (beyond / FALL) ** 2


def _quadratic(w: Points, *, crossed: bool) -> Float[Array, "n q"]:
    products = (
        jnp.stack([w[:, i] * w[:, j] for i in range(w.shape[1]) for j in range(i, w.shape[1])], 1) if crossed else w**2
    )
    return jnp.concatenate([jnp.ones_like(w[:, :1]), w, products], axis=1)


def _weighted_ess(log_weights: PerParticle, step: PerParticle) -> Scalar:
    """n E[r]² / E[r²] for the factors r = exp(`step`) by which weights change, under the weights before."""
    first, second = jax.nn.logsumexp(log_weights + step), jax.nn.logsumexp(log_weights + 2 * step)
    return log_weights.shape[0] * jnp.exp(2 * first - second)


def diagnose(
    log_weights: PerParticle,
    prior: Particles,
    values: PerParticle,
    log_increment: Scalar,
    step: PerParticle | None = None,
) -> dict:
    """What the weights of one step say: effective sample size, tail, and the evidence they estimate; and what they may
    have missed.

    `prior` are weighted particles before the observation, `values` their log likelihoods: Σ W p(o | x) estimates the
    same increment without any flow. A flow that left a mode behind has even weights all the same, but its evidence
    falls short of this one: `missed` is by how many standard errors. `step` are the log weights of this step alone,
    where `log_weights` hold earlier ones too.
    """
    # a likelihood that is NaN is one that rules nothing in
    terms = jnp.exp(jnp.nan_to_num(values - log_increment, nan=-jnp.inf, posinf=80.0, neginf=-jnp.inf))
    terms = jnp.minimum(terms, 1e15)
    weights = jnp.exp(prior.log_weights)
    plain = weights @ terms
    error = jnp.sqrt(jnp.sum((weights * (terms - plain)) ** 2))
    return {
        "ess": ess(log_weights),
        "step_ess": ess(log_weights) if step is None else _weighted_ess(prior.log_weights, step),
        "pareto_k": pareto_k(log_weights),
        "total": jax.nn.logsumexp(log_weights),
        "missed": (plain - 1.0) / (error + 1e-6),
    }
