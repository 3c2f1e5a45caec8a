"""The fields that need no neighbours: position, mean score, curvature times position, and the score itself."""

from jax import numpy as jnp

from pfbr.flow.fields.seen import At, Fields, Seen


def plain_fields(seen: Seen, at: At) -> Fields:
    """w/√d, ū/m, C w/m, u(w)/m; and the log likelihood in units of its spread."""
    n, d = at.points.shape
    stack = lambda *parts: jnp.stack([jnp.broadcast_to(part, (n, *part.shape[-1:])) for part in parts], axis=1)
    matrices = lambda *parts: jnp.stack([jnp.broadcast_to(part, (n, d, d)) for part in parts], axis=1)
    eye = jnp.eye(d, dtype=at.points.dtype)
    m = seen.size
    return Fields(
        stack(at.points / d**0.5, seen.mean_score / m, at.points @ seen.curvature / m, at.scores / m),
        matrices(eye / d**0.5, 0 * eye, seen.curvature / m, at.hessians / m),
        (at.values / seen.spread)[:, None],
        (at.scores / seen.spread)[:, None],
    )
