"""One state of every filter, such that together they have the mean and covariance of all of them."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.filter.matching import matched
from pfbr.inference.nested.inner import Clouds
from pfbr.inference.nested.resampling import ancestors
from pfbr.particles.whitening import whitening_of
from pfbr.typing import PerParticle, Points

GOLDEN = (np.sqrt(5.0) - 1) / 2


@jax.jit  # sessions look at particles outside of a compiled step, where every operation would be traced anew
def one_state_each(filters: Clouds, log_weights: PerParticle) -> Points:
    """The i-th filter gives the state at the share i · golden ratio, modulo 1, of its weight along a line: the shares
    are even over any stretch of filters. What is left of the noise of choosing is taken out by an affine map."""
    n, m, d = filters.points.shape
    inner, weights = jnp.exp(filters.log_weights), jnp.exp(log_weights)
    shares = jnp.asarray(np.mod(0.5 + GOLDEN * np.arange(n), 1.0)[:, None], filters.points.dtype)
    chosen = jnp.take_along_axis(filters.points, ancestors(filters.points, inner, shares)[..., None], axis=1)[:, 0]
    if n < 4 * d + 4:  # too few for a covariance
        return chosen
    everything = (weights[:, None] * inner).reshape(-1)
    return matched(chosen, weights, whitening_of(filters.points.reshape(n * m, d), everything, shrink=False))
