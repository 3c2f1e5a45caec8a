"""Quasi-random noise for weighted particles, matched to them."""

from pfbr.particles.qmc import shuffled_sobol_normal
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Key, PerParticle, Points


def transition_normals(key: Key, points: Points, weights: PerParticle, *, match: bool) -> Points:
    """Standard normals (n, d); matched: mean zero, covariance one, no correlation with the particles, all as weighted.

    With linear dynamics the predicted mean and covariance are then those of the formula. Less is matched where there
    are too few particles for that many conditions.
    """
    n, d = points.shape
    noise = shuffled_sobol_normal(key, n, d)
    if not match:
        return noise
    if n > 4 * d + 2:
        z = whitening_of(points, weights, shrink=False).whiten(points)
        noise = noise - weights @ noise
        noise = noise - z @ ((weights[:, None] * z).T @ noise)
    if n > 2 * d + 2:
        noise = whitening_of(noise, weights, shrink=False).whiten(noise)
    return noise
