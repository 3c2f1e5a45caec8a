"""A running sum that loses nothing: what rounding drops is carried along (Neumaier 1974)."""

import equinox as eqx
from jax import numpy as jnp

from pfbr.typing import Scalar


class CompensatedSum(eqx.Module):
    """`total` as the precision in use holds it, and `lost`, the small change that it could not hold."""

    total: Scalar
    lost: Scalar

    @classmethod
    def zero(cls) -> "CompensatedSum":
        return cls(jnp.zeros((), jnp.result_type(float)), jnp.zeros((), jnp.result_type(float)))

    def add(self, value: Scalar) -> "CompensatedSum":
        total = self.total + value
        larger = jnp.abs(self.total) >= jnp.abs(value)
        dropped = jnp.where(larger, (self.total - total) + value, (value - total) + self.total)
        return CompensatedSum(total, self.lost + dropped)

    @property
    def value(self) -> Scalar:
        return self.total + self.lost
