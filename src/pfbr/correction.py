"""From log densities to weights: the flow as the proposal of importance sampling, and what the weights say about it.

Every function returns log weights whose sum of exponentials estimates the evidence, so that 1/n is already in them.
A map F that does not depend on the points it moves makes the estimate unbiased; docs/trust.md says when it does not.
"""

import jax
from jax import numpy as jnp

from pfbr.frame import frame_of
from pfbr.kernels import kde_log_density, squared_distances
from pfbr.likelihood import Likelihood
from pfbr.models.base import StateSpaceModel, offers
from pfbr.pareto import pareto_k
from pfbr.particles import Particles, ess
from pfbr.shapes import PerParticle, Points

MAX_ANCHORS = 512  # of the continued density: its cost grows with their cube
KERNEL_WIDTH = 1.5  # in the frame of the anchors
NUGGET = 1e-4  # of the kernel matrix: float32 must invert it


def path_log_weights(
    model: StateSpaceModel,
    before: Particles,
    predicted: Points,
    moved: Points,
    log_det: PerParticle,
    likelihood: Likelihood,
) -> PerParticle:
    """log W + log p(x | x_prev) + log p(o | x) + log|det ∂F| − log p(x̃ | x_prev), each particle with its own ancestor.

    `log_det` is the accumulated divergence: log density before the flow minus after it. Cheap, and exact for any F;
    but F carries the spread of the ancestors along, which no ancestor's own transition explains: in many dimensions
    these weights are far more uneven than those of `marginal_log_weights`.
    """
    log_transition = jax.vmap(model.log_transition)
    there, here = log_transition(moved, before.points), log_transition(predicted, before.points)
    return before.log_weights + there + likelihood.values(moved) + log_det - here


def marginal_log_weights(
    model: StateSpaceModel, before: Particles, moved: Points, log_density: PerParticle, likelihood: Likelihood
) -> PerParticle:
    """log Σ_j W_j p(x | x_prev^j) + log p(o | x) − log q(x) − log n: any ancestor may explain a particle.

    `log_density` is that of the flow, begun at the equal mixture of transitions from which the particles were drawn,
    one from each component. These weights are the average of the path's weights over ancestors, so that their variance
    is never larger (Klaas, de Freitas and Doucet 2005); the price is n² transition densities.
    """
    n = moved.shape[0]
    return mixture_log_density(model, before, moved) + likelihood.values(moved) - log_density - jnp.log(float(n))


def mixture_log_density(model: StateSpaceModel, before: Particles, at: Points) -> PerParticle:
    """log Σ_j W_j p(x | x_prev^j) at each row of `at`."""
    if offers(model, "transition_mean_and_std"):
        means, stds = jax.vmap(model.transition_mean_and_std)(before.points)
        return kde_log_density(Particles(means, before.log_weights), stds[0], at)
    pairwise = jax.vmap(jax.vmap(model.log_transition, (None, 0)), (0, None))
    return jax.nn.logsumexp(pairwise(at, before.points) + before.log_weights, axis=1)


def static_log_weights(log_target: PerParticle, log_density: PerParticle) -> PerParticle:
    """log p(x, O) − log q(x) − log n, for an unknown at rest; `log_target` is exact or continued (see below)."""
    return log_target - log_density - jnp.log(float(log_density.shape[0]))


def continued_log_density(anchors: Points, values: PerParticle, at: Points) -> PerParticle:
    """A log density known at the `anchors`, continued to the points `at`: how a past without memory is re-evaluated.

    A quadratic fitted to the values, exact for Gaussians, plus a Gaussian-kernel interpolation of what it leaves, in
    the frame of the anchors. Approximate: good between the anchors, a quadratic beyond them.
    """
    step = max(1, anchors.shape[0] // MAX_ANCHORS)
    anchors, values = anchors[::step], values[::step]
    # an anchor that the observations rule out has no log density; it counts as far below the others
    alive = jnp.isfinite(values)
    lowest = jnp.min(jnp.where(alive, values, jnp.inf))
    values = jnp.where(alive, values, lowest - 5.0)
    frame = frame_of(anchors)
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
    smooth = jnp.exp(-0.5 * squared_distances(there, own) / KERNEL_WIDTH**2) @ coefficients
    return level + _quadratic(there, crossed=crossed) @ weights + smooth


def _quadratic(w: Points, *, crossed: bool) -> Points:
    products = (
        jnp.stack([w[:, i] * w[:, j] for i in range(w.shape[1]) for j in range(i, w.shape[1])], 1) if crossed else w**2
    )
    return jnp.concatenate([jnp.ones_like(w[:, :1]), w, products], axis=1)


def judged(log_weights: PerParticle) -> dict:
    """What the weights of one step say: effective sample size, tail, and the evidence they estimate."""
    return {"ess": ess(log_weights), "pareto_k": pareto_k(log_weights), "total": jax.nn.logsumexp(log_weights)}
