"""What a step says about itself: the error it is thought to have, and whether that is worth a flag."""

import jax
from jax import Array
from jax import numpy as jnp

from pfbr.inference.adaptive.static.state import StaticInfo
from pfbr.particles.whitening import whitening_of

MOST_BENT = 0.25  # nats²: variance over the cloud of what the quadratic for dropped rows leaves unexplained
# nats² for each dimension: the same where no row is kept. If all of it were along a line, the mean would be off by the
# root of it over that of the dimension
MOST_CARRIED = 0.05
FAR = 0.3  # standard deviations that the cloud moves after the row is in: three times what is by chance
COARSE = 0.1  # standard deviations between neighbouring floats: beyond, particles are on a lattice that shows


def stein_error(points: Array, scores: Array, log_weights: Array) -> Array:
    """Mean of the scores in units of their own spread, over √d: 0 at the target, 1/√n for n draws from it.

    For a Gaussian it is the error of the mean. The scores' covariance is the target's information, so that this is
    bounded where scores have heavy tails, as in a funnel, where a Newton step is not.
    """
    d = points.shape[1]
    weights = jax.nn.softmax(log_weights)
    scores = whitening_of(points, weights).covectors(scores)
    mean = weights @ scores
    spread = (weights[:, None] * scores).T @ scores
    length = jnp.sqrt(jnp.maximum(jnp.diag(spread), jnp.finfo(points.dtype).tiny))
    ridge = 1e-4 * jnp.eye(d, dtype=points.dtype)
    factor = jnp.linalg.cholesky(spread / length[:, None] / length + ridge)
    share = jnp.sum(jax.scipy.linalg.solve_triangular(factor, mean / length, lower=True) ** 2)
    share = jnp.minimum(share, 1 - 1e-6)  # of E[s]ᵀ E[ssᵀ]⁻¹ E[s] ≤ 1
    return jnp.sqrt(share / (1 - share) / d)


def info_of(state, left, k, log_predictive, move, acceptance, stages, moves, stein, log_variance, drift) -> StaticInfo:
    n = state.points.shape[0]
    error = jnp.sqrt(state.variance + jnp.maximum(1 / jnp.maximum(left, 1) - 1 / n, 0))
    # the law's scale is that of the last rejuvenation: near enough for this
    coarse = state.law.rounding > COARSE
    carried = state.carried is not None
    misfit = state.carried.misfit if carried else state.surrogate.misfit
    bent = ~(misfit <= (MOST_CARRIED * state.points.shape[1] if carried else MOST_BENT))
    flagged = coarse | bent | ~(error < 0.3) | (stein > 0.3) | (drift > FAR) | ~(log_variance < 0.5)
    flagged = flagged | ~jnp.isfinite(log_predictive)
    exact = (state.surrogate.rows == 0) if state.past.capacity else state.rejuvenations == 0
    return StaticInfo(
        left,
        k,
        log_predictive,
        flagged,
        exact,
        jnp.asarray(move, jnp.int32),
        state.rejuvenations,
        acceptance,
        stages,
        moves,
        error,
        misfit,
        drift,
        stein,
    )
