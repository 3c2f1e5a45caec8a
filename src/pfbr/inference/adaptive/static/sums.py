"""A running sum that loses nothing: what rounding cut off is kept beside it (Neumaier)."""

import equinox as eqx
from jax import Array
from jax import numpy as jnp


class CompensatedSum(eqx.Module):
    high: Array
    low: Array

    @classmethod
    def zero(cls, dtype=jnp.float32) -> "CompensatedSum":
        return cls(jnp.zeros((), dtype), jnp.zeros((), dtype))

    def add(self, term: Array) -> "CompensatedSum":
        total = self.high + term
        lost = jnp.where(jnp.abs(self.high) >= jnp.abs(term), (self.high - total) + term, (term - total) + self.high)
        low = self.low + jnp.where(jnp.isfinite(total), lost, 0)
        return CompensatedSum(total, low)

    @property
    def value(self) -> Array:
        return self.high + self.low
