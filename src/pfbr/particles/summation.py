"""A running sum that loses nothing: what rounding drops is carried along (Knuth's two-sum; Dekker 1971)."""

import equinox as eqx
from jax import numpy as jnp

from pfbr.typing import Scalar


class CompensatedSum(eqx.Module):
    """`total` as the precision in use holds it, and `lost`, the small change that it could not hold: always less than
    half of the last digit of `total`, so that nothing is dropped however many terms come."""

    total: Scalar
    lost: Scalar

    @classmethod
    def zero(cls) -> "CompensatedSum":
        return cls(jnp.zeros((), jnp.result_type(float)), jnp.zeros((), jnp.result_type(float)))

    def add(self, value: Scalar) -> "CompensatedSum":
        rounded = self.total + value
        back = rounded - self.total
        lost = self.lost + ((self.total - (rounded - back)) + (value - back))
        total = rounded + lost
        lost = lost - (total - rounded)
        # the difference of infinities is none: an impossible observation leaves −inf and nothing beside it
        return CompensatedSum(
            jnp.where(jnp.isfinite(rounded), total, rounded), jnp.where(jnp.isfinite(rounded), lost, 0.0)
        )

    @property
    def value(self) -> Scalar:
        return self.total + self.lost
