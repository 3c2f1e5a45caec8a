"""Mean and covariance of a resampled cloud put back to what they were: resampling without its noise in them."""

from pfbr.particles.whitening import Whitening, whitening_of
from pfbr.typing import PerParticle, Points

MAX_MATCHED = 1024  # particles: of more, moments are good by themselves, and matching takes longer than all the rest


def matched(points: Points, weights: PerParticle, target: Whitening) -> Points:
    """The points moved by one affine map, so that mean and covariance are the target's; the identity where they
    agree."""
    own = whitening_of(points, weights, shrink=False)
    return points + (target.mean - own.mean) + (own.whiten(points) @ (target.scale - own.scale).T)
