"""Is this a Gaussian cloud under a quadratic likelihood? Asked of a few particles first, of all only where these agree.

Then one affine map is the exact update. The tests cost O(n d³): Mardia's skewness, a sum over all pairs of particles,
is also the squared length of the third moments, Σ_ijk (E z_i z_j z_k)².
"""

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.adaptive.filter.affine_flow import quadratic
from pfbr.inference.adaptive.filter.cloud import Cloud
from pfbr.particles.particles import ess
from pfbr.particles.particles import normalise as normalised
from pfbr.particles.whitening import whitening_of
from pfbr.typing import PerParticle, Points, Real

FEW = 256  # particles that are asked first
BENT = 0.01  # standard deviations by which dynamics may miss being affine: no test of normality sees less


def is_exact(cloud: Cloud, values: PerParticle, value_and_score, misfit: Real) -> Array:
    """Whether the affine flow is exact here, as far as the particles can tell, but for so many nats of misfit."""
    n = cloud.points.shape[0]
    stride = max(1, n // FEW)
    points, log_weights = cloud.points[::stride], normalised(cloud.log_weights[::stride])
    seen = quadratic(points, jnp.exp(log_weights), value_and_score)
    plain = (seen.misfit < misfit) & jnp.all(jnp.isfinite(values))
    informative = seen.sharpness > 1e-3  # a flat likelihood is weighed: nothing moves
    many = cloud.ess > 0.5 * n  # few effective particles pass any test of normality
    exact = plain & informative & many & is_gaussian(points, log_weights)
    if stride == 1:
        return exact

    def all_agree():
        everywhere = quadratic(cloud.points, cloud.weights, value_and_score)
        return (everywhere.misfit < misfit) & is_gaussian(cloud.points, cloud.log_weights)

    return jax.lax.cond(exact, all_agree, lambda: jnp.array(False))


def is_gaussian(points: Points, log_weights: PerParticle) -> Array:
    """Mardia's tests of skewness and kurtosis, at three standard errors: what no test of two moments can see the
    affine flow does not see either."""
    n, d = points.shape
    weights = jnp.exp(log_weights)
    z = whitening_of(points, weights, shrink=False).whiten(points)
    size = ess(log_weights)
    pairs = (weights[:, None, None] * z[:, :, None] * z[:, None, :]).reshape(n, d * d)
    skewness = jnp.sum((pairs.T @ z) ** 2) * size / 6
    degrees = d * (d + 1) * (d + 2) / 6
    kurtosis = weights @ jnp.sum(z**2, axis=1) ** 2 - d * (d + 2)
    return (skewness < degrees + 3 * jnp.sqrt(2 * degrees)) & (jnp.abs(kurtosis) < 3 * jnp.sqrt(8 * d * (d + 2) / size))


def is_affine(before: Points, after: Points, weights: PerParticle) -> Array:
    """Whether one affine map leads from these points to those: else a Gaussian does not stay one, whatever a test of a
    few particles says."""
    z, w = (whitening_of(points, weights, shrink=False).whiten(points) for points in (before, after))
    left = w - z @ ((weights[:, None] * z).T @ w)
    return jnp.sqrt(weights @ jnp.mean(left**2, axis=1)) < BENT
