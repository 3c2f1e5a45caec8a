"""The trace of a velocity's Jacobian by forward mode, or estimated; by structure it comes with the velocity itself."""

from collections.abc import Callable

import jax
from jax import numpy as jnp

from pfbr.typing import PerParticle, Points

WAYS = ("exact", "structure", "forward", "hutchinson")


def by_forward_mode(velocity: Callable[[Points], Points], points: Points) -> tuple[Points, PerParticle]:
    """Velocity and exact divergence with d forward derivatives: tr J = Σ_i ∂f_i/∂x_i.

    `velocity` acts on every row by itself, so that one tangent serves all particles.
    """
    d = points.shape[-1]

    def column(direction):
        value, tangent = jax.jvp(velocity, (points,), (jnp.broadcast_to(direction, points.shape),))
        return value, tangent @ direction

    values, diagonal = jax.vmap(column, out_axes=(None, 0))(jnp.eye(d, dtype=points.dtype))
    return values, jnp.sum(diagonal, axis=0)


def by_hutchinson(velocity: Callable[[Points], Points], points: Points, probe: Points) -> tuple[Points, PerParticle]:
    """Velocity and the unbiased estimate εᵀ J ε of its divergence; `probe` holds one ε (entries ±1) per particle."""
    value, tangent = jax.jvp(velocity, (points,), (probe,))
    return value, jnp.sum(probe * tangent, axis=-1)
