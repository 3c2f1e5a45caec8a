"""The affine map to the Gaussian that the target's scores describe, weighed exactly: target over target.

In the frame of the law that the cloud was drawn from, the scores of today's target are regressed on the points:
score ≈ P(m − u). The map u ↦ P^(−½) u + m sends N(0, I) to N(m, P⁻¹). For Gaussian targets both are exact whatever
noise the cloud has, and the weights equal; for any other target the weights say how good the map is. No density is
estimated.

Equal weights say that the map is right where its points are, and nothing of where they are not: a mode that the map
left behind is in no weight. The unmapped cloud, weighed, still sees it, and says how much is left out.
"""

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.target import Evaluation
from pfbr.particles.whitening import Whitening, whitening_of


class GaussianFit(eqx.Module):
    """Mean and precision of the Gaussian whose scores are nearest to the target's, in a white frame."""

    mean: Array  # (d,)
    precision: Array  # (d, d), symmetric
    usable: Array  # bool: finite and positive definite as it came


class Mapped(eqx.Module):
    points: Array
    evaluation: Evaluation
    log_weights: Array  # unnormalised
    left_out: Array  # share of the target, as the unmapped cloud sees it, that is far from where the points are now


def fit_gaussian(white: Array, scores: Array, weights: Array) -> GaussianFit:
    d = white.shape[1]
    eye = jnp.eye(d, dtype=white.dtype)
    centre, mean_score = weights @ white, weights @ scores
    u = white - centre
    spread = (weights[:, None] * u).T @ u
    slope = (weights[:, None] * u).T @ (scores - mean_score)
    ridge = 4 * d * jnp.finfo(white.dtype).eps * jnp.trace(spread) / d
    precision = -solve_positive(spread + ridge * eye, slope)
    precision = 0.5 * (precision + precision.T)
    usable = jnp.all(jnp.isfinite(precision)) & jnp.all(jnp.isfinite(mean_score))
    values, vectors = jnp.linalg.eigh(jnp.where(usable, precision, eye))
    usable = usable & (values[0] > 0)
    # where the target curves upwards the cloud's own width is a better guess than none
    values = jnp.clip(values, 0.05, None)
    precision = jnp.where(usable, precision, (vectors * values) @ vectors.T)
    shift = vectors @ ((vectors.T @ jnp.where(jnp.isfinite(mean_score), mean_score, 0)) / values)
    return GaussianFit(centre + shift, precision, usable)


def solve_positive(matrix: Array, right: Array) -> Array:
    """By Cholesky: compiles and runs in a fraction of the general solver's time."""
    return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(matrix), True), right)


def law_of(points: Array, scores: Array, log_weights: Array) -> Whitening:
    """The frame in which the target is N(0, I) as its scores describe it; the cloud's own where they do not.

    Not the cloud's: a map from the cloud's sample moments would carry their noise into its weights (a variance of
    d²/n, half the ESS in 26 dimensions) and into the evidence (a bias of as much).
    """
    weights = jax.nn.softmax(log_weights)
    frame = whitening_of(points, weights)
    fit = fit_gaussian(frame.whiten(points), frame.covectors(scores), weights)
    values, vectors = jnp.linalg.eigh(fit.precision)
    law = frame.inner(fit.mean, vectors / jnp.sqrt(jnp.maximum(values, jnp.finfo(values.dtype).tiny)))
    fine = fit.usable & law.exists
    return jax.tree.map(lambda a, b: jnp.where(fine, a, b), law, frame)


def far(dim: int) -> float:
    """Standard deviations from the mean that a normal leaves with a chance of about 5e-5."""
    return dim**0.5 + 3.0


def affine_map(evaluate, points: Array, evaluation: Evaluation, law: Whitening, log_weights: Array, t: Array) -> Mapped:
    """Points of the map from the law they were drawn from to the target at power t.

    log_weights: today's, for the target at power t; the new ones are relative to them.
    """
    u = law.whiten(points)
    weights = jax.nn.softmax(log_weights)
    fit = fit_gaussian(u, law.covectors(evaluation.score(t)), weights)
    values, vectors = jnp.linalg.eigh(fit.precision)
    values = jnp.maximum(values, jnp.finfo(points.dtype).tiny)
    root = (vectors / jnp.sqrt(values)) @ vectors.T
    mapped = law.restore(u @ root + fit.mean)
    log_det = -0.5 * jnp.sum(jnp.log(values))
    new = evaluate(mapped)
    change = new.value(t) - evaluation.value(t) + log_det
    # a particle without weight has none to carry over, wherever it is mapped to
    weighed = jnp.where(jnp.isneginf(log_weights) | jnp.isnan(change), -jnp.inf, log_weights + change)
    left_out = weights @ (jnp.sum(((u - fit.mean) @ (vectors * jnp.sqrt(values))) ** 2, axis=1) > far(u.shape[1]) ** 2)
    return Mapped(mapped, new, jnp.where(fit.usable, weighed, -jnp.inf), left_out)
