"""The fields that need no neighbours: position, mean score, curvature times position, and the score itself."""

from jax import numpy as jnp

from pfbr.flow.fields.active import Active, At, Fields
from pfbr.flow.fields.seen import Seen


def plain_fields(seen: Seen, active: Active, at: At) -> Fields:
    """y, ū/m, C y/m, u(y)/m; the log likelihood in units of its spread, and the size of the other coordinates."""
    r, n = at.points.shape
    everywhere = lambda array: jnp.broadcast_to(array[..., None], (*array.shape, n))
    eye = jnp.eye(r, dtype=at.points.dtype)
    m = seen.size
    return Fields(
        jnp.stack([at.points, everywhere(active.mean_score / m), active.curvature @ at.points / m, at.scores / m]),
        jnp.stack([everywhere(eye), everywhere(0 * eye), everywhere(active.curvature / m), at.hessians / m]),
        jnp.stack([at.values / seen.spread, at.beyond]),
        jnp.stack([at.scores / seen.spread, jnp.zeros_like(at.scores)]),
    )
