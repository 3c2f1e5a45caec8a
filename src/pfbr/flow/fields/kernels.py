"""Fields from a point's neighbours in the cloud: where they lie, which of them are likelier, and their scores.

With weights k_j ∝ exp(−½ (w − w_j)ᵀ A (w − w_j) / h²) of the neighbours, the Jacobian of an average is a covariance:
∂ Σ k_j f_j / ∂w = Cov_k(f, w) A / h². Derivatives therefore cost one more product with the same weights.
"""

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Int

from pfbr.flow.fields.seen import At, Fields, Seen
from pfbr.typing import Matrix

CENTRES = 256  # of a larger cloud only so many are asked, so that the cost grows no faster than the cloud


def kernel_fields(seen: Seen, at: At, metric: Matrix, width: float, own: Int[Array, " n"] | None) -> Fields:
    """Mean shift, shift to likelier neighbours, and mean score of the neighbours; log density and log likelihood there.

    `own` says which particle of the cloud a point is: it is not its own neighbour.
    """
    d = at.points.shape[1]
    num = seen.points.shape[0]
    count = min(num, CENTRES)
    chosen = jnp.asarray(np.arange(count) * num // count)
    w, u, values = seen.points[chosen], seen.scores[chosen] / seen.size, seen.values[chosen] / seen.spread
    metric = metric / width**2
    across = at.points @ metric
    square = jnp.sum(across * at.points, 1)[:, None] + jnp.sum(w @ metric * w, 1) - 2 * across @ w.T
    log_weights = jnp.log(seen.weights[chosen]) - 0.5 * square
    if own is not None:
        log_weights = jnp.where(own[:, None] == chosen, -jnp.inf, log_weights)
    k = jax.nn.softmax(log_weights, axis=1)

    # first and second moments of the neighbours, all by products with k
    mean_w, mean_u, mean_l = k @ w, k @ u, k @ values
    products = lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(chosen), -1)
    outer = lambda a, b: a[:, :, None] * b[:, None, :]
    ww = (k @ products(w, w)).reshape(-1, d, d)
    uw = (k @ products(u, w)).reshape(-1, d, d)
    lww = (k @ products(values[:, None] * w, w)).reshape(-1, d, d)
    lw = k @ (values[:, None] * w)
    cov_ww, cov_uw = ww - outer(mean_w, mean_w), uw - outer(mean_u, mean_w)
    cov_lw = lw - mean_l[:, None] * mean_w
    # third central moment of value, position, position
    third = lww - mean_l[:, None, None] * ww - outer(cov_lw, mean_w) - outer(mean_w, cov_lw)
    eye = jnp.eye(d, dtype=w.dtype)
    root = d**0.5
    return Fields(
        jnp.stack([(mean_w - at.points) / root, cov_lw / root, mean_u], axis=1),
        jnp.stack([(cov_ww @ metric - eye) / root, third @ metric / root, cov_uw @ metric], axis=1),
        jnp.stack([jax.nn.logsumexp(log_weights, axis=1) / 3, mean_l], axis=1),
        jnp.stack([(mean_w - at.points) @ metric / 3, cov_lw @ metric], axis=1),
    )
