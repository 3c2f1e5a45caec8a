"""Weights that an all but exact flow leaves say more about the luck of the draw than about the posterior. What they say
of mean and covariance beyond chance moves the particles instead, and the factors by which weights changed are given up.

Every resampling that uneven weights lead to costs 1/√N standard deviations of the mean, and a state with a memory adds
them up; a cloud that is moved as a whole loses nothing.
"""

from jax import numpy as jnp
from jaxtyping import Array

from pfbr.particles.whitening import whitening_of
from pfbr.typing import PerParticle, Points

LEAST, MOST = 0.25, 4.0  # what becomes of a variance


def evened(points: Points, weights: PerParticle, now: PerParticle) -> Points:
    """Particles that have, with their old `weights`, about the mean and covariance that they have with those of `now`.

    A change is believed as far as it is larger than chance would make it (James and Stein)."""
    d = points.shape[1]
    frame = whitening_of(points, weights, shrink=False)
    e = frame.whiten(points)
    change = now - weights
    squared, luck = jnp.sum(e**2, axis=1), change**2
    shift = _believed(change @ e, luck @ squared)
    bend = _believed((change[:, None] * e).T @ e, luck @ (squared**2 - 2 * squared + d))
    values, vectors = jnp.linalg.eigh(bend - jnp.outer(shift, shift))
    root = (vectors * jnp.sqrt(jnp.clip(1 + values, LEAST, MOST))) @ vectors.T
    return points + frame.vectors(e @ root - e + shift)


def _believed(change: Array, by_chance: Array) -> Array:
    """`by_chance`: its expected square if all of it were chance."""
    return jnp.maximum(0, 1 - by_chance / jnp.maximum(jnp.sum(change**2), 1e-30)) * change
