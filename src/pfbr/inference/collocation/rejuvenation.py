"""New particles for worn ones: resample, then redraw each within its own neighbourhood, at a density that is known.

The neighbourhood of a particle has a mean m and a covariance S. A kept particle x becomes m + √(1 − h²) (x − m) + h ε
with ε ~ N(0, S): mean and covariance of the neighbourhood stay what they were (Liu and West's shrinkage, but local, so
that a thin curve stays thin and two modes stay two). The law of the new particles is a mixture of known Gaussians.
"""

import jax
from jax import numpy as jnp

from pfbr.inference.collocation.velocity import ScoredParticles
from pfbr.particles.mixtures import MixtureOfGaussians
from pfbr.particles.resampling import systematic
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Key

NEIGHBOURS = 32  # effective number of particles within the kernel's width
SPREAD = 0.5  # h: zero keeps duplicates, one forgets where in its neighbourhood a particle was
ROWS = 256  # of the table of pairs that are in memory at once


def rejuvenate(key: Key, cloud: ScoredParticles) -> ScoredParticles:
    """As many particles, equally weighted, with the log density and score of the law they were drawn from."""
    keep_key, noise_key = jax.random.split(key)
    n, d = cloud.points.shape
    weights = jnp.exp(cloud.log_weights)
    frame = whitening_of(cloud.points, weights)
    w = frame.whiten(cloud.points)

    def neighbourhood(at):
        squared = jnp.sum((w - at) ** 2, axis=-1)
        order = jnp.argsort(squared)
        mass = jnp.cumsum(weights[order])
        effective = mass**2 / (jnp.cumsum(weights[order] ** 2) + 1e-30)
        last = jnp.minimum(jnp.searchsorted(jax.lax.cummax(effective), float(NEIGHBOURS)), n - 1)
        width = squared[order[last]] + 1e-12
        near = weights * jnp.exp(-squared / width)
        near /= jnp.sum(near) + 1e-30
        mean = near @ w
        centred = w - mean
        return mean, (near[:, None] * centred).T @ centred

    means, covariances = jax.lax.map(neighbourhood, w, batch_size=ROWS)
    eye = jnp.eye(d, dtype=w.dtype)
    ridge = 1e-6 * jnp.trace(covariances, axis1=1, axis2=2) + 1e-12
    scales = SPREAD * jnp.linalg.cholesky(covariances + ridge[:, None, None] * eye)

    kept = systematic(keep_key, cloud.log_weights, n)
    centres = means[kept] + jnp.sqrt(1 - SPREAD**2) * (w[kept] - means[kept])
    noise = jax.random.normal(noise_key, (n, d), w.dtype)
    new = centres + jnp.einsum("nij,nj->ni", scales[kept], noise)
    log_weights = jnp.full((n,), -jnp.log(float(n)), w.dtype)
    mixture = MixtureOfGaussians(log_weights, centres, scales[kept])
    log_density, scores = jax.lax.map(jax.value_and_grad(mixture.log_density), new, batch_size=ROWS)
    return ScoredParticles(
        frame.restore(new),
        log_density - frame.log_det,
        scores @ frame.inverse_scale,
        log_weights,
    )
