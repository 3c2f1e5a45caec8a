"""Can a classifier tell the particles from the truth? The classifier two-sample test with nearest neighbours.

Lopez-Paz and Oquab, "Revisiting classifier two-sample tests" (2017). Nearest neighbours need no training, so the
score depends on the samples alone.
"""

import jax
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.metrics.scores import Estimate
from pfbr.particles.density import squared_distances
from pfbr.particles.particles import Particles
from pfbr.typing import Key, Points


def c2st(key: Key, particles: Particles, truth_draws: Points, *, neighbours: int | None = None) -> Estimate:
    """Accuracy of the vote of the nearest other points, each point left out once; 0.5 is ideal, 1 is told apart.

    Weighted particles are first resampled to as many equal ones. `neighbours` is √(2n) where not given. As many
    true draws as particles are used.
    """
    n = particles.num_particles
    if truth_draws.shape[0] < n:
        raise InputError(f"c2st needs at least as many true draws as particles ({n}); got {truth_draws.shape[0]}.")
    k = round((2 * n) ** 0.5) if neighbours is None else neighbours
    k += 1 - k % 2  # an odd number of votes has no ties
    which_key, shuffle_key = jax.random.split(key)
    kept = jax.random.categorical(which_key, particles.log_weights, shape=(n,))
    equal = jnp.all(jnp.abs(particles.log_weights + jnp.log(float(n))) < 1e-4)
    points = jnp.where(equal, particles.points, particles.points[kept])
    truth = jax.random.choice(shuffle_key, truth_draws, (n,), replace=False)

    scale = jnp.std(truth, axis=0) + 1e-30
    both = jnp.concatenate([points, truth]) / scale
    label = jnp.concatenate([jnp.ones(n), jnp.zeros(n)])
    distances = squared_distances(both, both) + jnp.diag(jnp.full(2 * n, jnp.inf))
    _, nearest = jax.lax.top_k(-distances, k)
    vote = jnp.mean(label[nearest], axis=1) > 0.5
    accuracy = jnp.mean((vote == (label > 0.5)).astype(scale.dtype))
    return Estimate(accuracy, jnp.sqrt(jnp.maximum(accuracy * (1 - accuracy), 0.25 / (2 * n)) / (2 * n)))
