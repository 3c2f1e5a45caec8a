"""Fields from a point's neighbours in the cloud: where they lie, which of them are likelier, and their scores.

With weights k_j ∝ exp(−½ (s y − y_j)ᵀ A (s y − y_j)) of the neighbours, the Jacobian of an average is a covariance:
∂ Σ k_j f_j / ∂y = s Cov_k(f, y) A. Derivatives therefore cost one more product with the same weights.

For a cloud N(0, I), a kernel of width h about y √(1 + h²) makes Σ k_j f_j the mean of f over the Ornstein–Uhlenbeck
process that starts at y; the mean of such means of the score, from no time to for ever, is the velocity that is wanted.
"""

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.flow.fields.active import Active, At, Fields
from pfbr.flow.fields.seen import Seen

CENTRES = 96  # of a larger cloud only so many are asked, so that the cost grows no faster than the cloud
NEAR, WIDE = 0.5, 1.5  # widths in standard deviations, of one direction


def kernel_fields(seen: Seen, active: Active, at: At, own: Int[Array, " n"] | None) -> Fields:
    """Mean shift, shift to likelier neighbours, mean score of near and of wide neighbours; log density and log
    likelihood near by.

    `own` says which particle of the cloud a point is: it is not its own neighbour.
    """
    r, n = at.points.shape
    num = seen.points.shape[0]
    count = min(num, CENTRES)
    chosen = jnp.asarray(np.arange(count) * num // count)
    y, u, values = active.points[chosen].T, active.scores[chosen].T / seen.size, seen.values[chosen] / seen.spread
    values = values / jnp.sqrt(1 + values**2 / 9)
    log_prior = jnp.log(seen.weights[chosen])[:, None]
    outer = lambda a, b: a[:, None] * b[None]
    flat = lambda a, b: outer(a, b).reshape(r * r, -1)

    def neighbours(width: float, stretch: float):
        """Weights of all centres at every point, their log sum, and the metric of the derivatives."""
        metric = active.metric / width**2
        ours, theirs = stretch * at.points * jnp.sqrt(metric)[:, None], y * jnp.sqrt(metric)[:, None]
        square = jnp.sum(theirs**2, 0)[:, None] + jnp.sum(ours**2, 0) - 2 * theirs.T @ ours
        log_weights = log_prior - 0.5 * square
        if own is not None:
            log_weights = jnp.where(chosen[:, None] == own, -jnp.inf, log_weights)
        highest = jnp.max(log_weights, axis=0)
        k = jax.lax.optimization_barrier(jnp.exp(log_weights - jax.lax.optimization_barrier(highest)))
        total = jnp.sum(k, axis=0)
        return k, total, highest + jnp.log(total), stretch * metric[:, None]

    k, total, log_density, near = neighbours(NEAR, 1.0)
    moments = jnp.concatenate([y, u, values[None], values * y, flat(y, y), flat(u, y), values * flat(y, y)]) @ k / total
    ends = np.cumsum([r, r, 1, r, r * r, r * r])
    mean_y, mean_u, mean_l, ly, yy, uy, lyy = jnp.split(moments, ends)
    square = lambda a: a.reshape(r, r, n)
    cov_yy = square(yy) - outer(mean_y, mean_y)
    cov_uy = square(uy) - outer(mean_u, mean_y)
    cov_ly = ly - mean_l * mean_y
    # third central moment of value, position, position
    third = square(lyy) - mean_l * square(yy) - outer(cov_ly, mean_y) - outer(mean_y, cov_ly)

    k, total, _, wide = neighbours(WIDE, (1 + WIDE**2) ** 0.5)
    there_y, there_u, there_uy = jnp.split(jnp.concatenate([y, u, flat(u, y)]) @ k / total, [r, 2 * r])
    eye = jnp.eye(r, dtype=y.dtype)[:, :, None]
    return Fields(
        jnp.stack([mean_y - at.points, cov_ly, mean_u, there_u]),
        jnp.stack(
            [cov_yy * near - eye, third * near, cov_uy * near, (square(there_uy) - outer(there_u, there_y)) * wide]
        ),
        jnp.stack([log_density / 3, mean_l[0]]),
        jnp.stack([(mean_y - at.points) * near / 3, cov_ly * near]),
    )
