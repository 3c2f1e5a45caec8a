"""The density of a weighted cloud where no row is kept: Gaussian kernels drawn to the mean (West), in the white frame.

Drawn to the mean so that mean and covariance stay whatever the width. The width is the widest whose leave-one-out
likelihood is within a standard error of the best; width 1 is one Gaussian.
"""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.target import Evaluation, Target
from pfbr.particles.whitening import Whitening, whitening_of

WIDTHS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)


class KernelDensity(eqx.Module):
    frame: Whitening
    centres: Array  # (n, d) white, drawn to the mean
    log_weights: Array
    width: Array

    def log_density(self, x: Array) -> Array:
        """At one point, without the constant, which no ratio needs."""
        u = self.frame.whiten(x[None])[0]
        return jax.nn.logsumexp(log_kernels(u[None], self.centres, self.width, self.log_weights))


def log_kernels(at: Array, centres: Array, width: Array, log_weights: Array) -> Array:
    """(m, n) weighted log kernels."""
    squared = jnp.sum(at**2, 1)[:, None] + jnp.sum(centres**2, 1) - 2 * at @ centres.T
    return log_weights - 0.5 * jnp.maximum(squared, 0) / width**2 - at.shape[1] * jnp.log(width)


def fit_kernels(points: Array, log_weights: Array) -> KernelDensity:
    n = points.shape[0]
    weights = jax.nn.softmax(log_weights)
    frame = whitening_of(points, weights)
    u = frame.whiten(points)
    itself = jnp.eye(n, dtype=bool)

    def leave_one_out(width):
        kernels = log_kernels(u, jnp.sqrt(1 - width**2) * u, width, log_weights)
        each = jax.nn.logsumexp(jnp.where(itself & (width < 0.99), -jnp.inf, kernels), axis=1)
        value = weights @ each
        return value, jnp.sqrt(weights @ (each - value) ** 2 / n)

    widths = jnp.asarray(WIDTHS, points.dtype)
    value, error = jax.lax.map(leave_one_out, widths)
    best = jnp.argmax(value)
    width = jnp.max(jnp.where(value >= value[best] - error[best], widths, WIDTHS[-1]))
    return KernelDensity(frame, jnp.sqrt(1 - width**2) * u, log_weights, width)


def evaluate_density(target: Target, density: KernelDensity, first: Array, points: Array, row: Any) -> Evaluation:
    """Cloud density times the new row; before the first row the prior itself, which is known."""
    prior, prior_score = jax.vmap(jax.value_and_grad(target.log_prior))(points)
    cloud, cloud_score = jax.vmap(jax.value_and_grad(density.log_density))(points)
    new, new_score = jax.vmap(jax.value_and_grad(lambda x: target.log_new(x, row)))(points)
    new = jnp.where(jnp.isnan(new), -jnp.inf, new)
    # outside of the prior's support stays outside, whatever kernels say
    cloud = jnp.where(jnp.isfinite(prior), cloud, -jnp.inf)
    return Evaluation(jnp.where(first, prior, cloud), jnp.where(first, prior_score, cloud_score), new, new_score)
