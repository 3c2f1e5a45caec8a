"""Rows that are no longer kept, as one quadratic: what their log likelihood looks like over the cloud.

A block is fitted when it leaves, by regressing its scores on the points of a cloud that knows the block and all rows
after it. The cloud only shrinks from there, so the quadratic is asked only where it was fitted; its third-order error
is that of one block at a time and falls against the growing information.
"""

import equinox as eqx
from jax import Array
from jax import numpy as jnp


class Surrogate(eqx.Module):
    """constant-free: slope · z − ½ zᵀ curvature z, with z = (x − centre) / scale; zero while all rows are kept."""

    centre: Array
    scale: Array
    slope: Array
    curvature: Array
    rows: Array  # int32, how many rows stand in it
    misfit: Array  # variance over the cloud that the quadratics left unexplained, summed over blocks (nats²)

    def value_and_score(self, points: Array) -> tuple[Array, Array]:
        z = (points - self.centre) / self.scale
        bend = z @ self.curvature
        value = z @ self.slope - 0.5 * jnp.sum(bend * z, axis=1)
        return value, (self.slope - bend) / self.scale

    def recentred(self, centre: Array, scale: Array) -> "Surrogate":
        """The same quadratic about another point in other units."""
        shift = (centre - self.centre) / self.scale
        ratio = scale / self.scale
        slope = (self.slope - self.curvature @ shift) * ratio
        return Surrogate(centre, scale, slope, self.curvature * ratio[:, None] * ratio, self.rows, self.misfit)

    def add(self, slope: Array, curvature: Array, rows: int, misfit: Array) -> "Surrogate":
        return Surrogate(
            self.centre,
            self.scale,
            self.slope + slope,
            self.curvature + curvature,
            self.rows + rows,
            self.misfit + misfit,
        )


def no_surrogate(dim: int, dtype) -> Surrogate:
    zero = jnp.zeros((), dtype)
    vector = jnp.zeros(dim, dtype)
    return Surrogate(vector, jnp.ones(dim, dtype), vector, jnp.zeros((dim, dim), dtype), jnp.zeros((), jnp.int32), zero)
