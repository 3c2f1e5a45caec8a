"""Unknowns that are not free: each constraint is a smooth map from free numbers, with the logarithm of its stretch.

A density on the user's own scale times the map's |det J| is the density of the free numbers, so that a prior is written
where it is understood and particles move where nothing can go wrong.
"""

import math
from abc import abstractmethod

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import ModelError
from pfbr.typing import Scalar


class Constraint(eqx.Module):
    """`size` free numbers behind one unknown of `shape`."""

    shape: eqx.AbstractVar[tuple[int, ...]]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @abstractmethod
    def constrain(self, free: Array) -> Array:
        """From free numbers (size,) to the user's scale (shape)."""

    @abstractmethod
    def unconstrain(self, value: Array) -> Array:
        """The inverse of `constrain`."""

    @abstractmethod
    def log_det(self, free: Array) -> Scalar:
        """log |det| of the derivative of `constrain`; for a simplex of its first k − 1 values, for a correlation matrix
        of the entries below its diagonal."""


class Free(Constraint):
    """Any real numbers."""

    shape: tuple[int, ...] = eqx.field(static=True, default=())

    def constrain(self, free: Array) -> Array:
        return free.reshape(self.shape)

    def unconstrain(self, value: Array) -> Array:
        return jnp.reshape(value, (self.size,))

    def log_det(self, free: Array) -> Scalar:
        return jnp.zeros((), free.dtype)


class Positive(Constraint):
    """exp(z) > 0. `positive` is one number, `positive(3)` a vector of them."""

    shape: tuple[int, ...] = eqx.field(static=True, default=())

    def __call__(self, *shape: int) -> "Positive":
        return Positive(_checked_shape(shape))

    def constrain(self, free: Array) -> Array:
        return jnp.exp(free).reshape(self.shape)

    def unconstrain(self, value: Array) -> Array:
        return jnp.log(jnp.reshape(value, (self.size,)))

    def log_det(self, free: Array) -> Scalar:
        return jnp.sum(free)


class Interval(Constraint):
    """low + (high − low) σ(z)."""

    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True, default=())

    def __call__(self, *shape: int) -> "Interval":
        return Interval(low=self.low, high=self.high, shape=_checked_shape(shape))

    def constrain(self, free: Array) -> Array:
        return (self.low + (self.high - self.low) * jax.nn.sigmoid(free)).reshape(self.shape)

    def unconstrain(self, value: Array) -> Array:
        share = (jnp.reshape(value, (self.size,)) - self.low) / (self.high - self.low)
        return jnp.log(share) - jnp.log1p(-share)

    def log_det(self, free: Array) -> Scalar:
        return jnp.sum(jnp.log(self.high - self.low) + jax.nn.log_sigmoid(free) + jax.nn.log_sigmoid(-free))


class Simplex(Constraint):
    """k shares that sum to one, by breaking a stick: z = 0 breaks it into equal parts."""

    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        return self.shape[0] - 1

    def _logits(self, free: Array) -> Array:
        left = jnp.arange(self.size, 0, -1, dtype=free.dtype)  # pieces that are still to come after this one
        return free - jnp.log(left)

    def constrain(self, free: Array) -> Array:
        broken = jax.nn.sigmoid(self._logits(free))
        log_left = jnp.concatenate([jnp.zeros(1, free.dtype), jnp.cumsum(jax.nn.log_sigmoid(-self._logits(free)))])
        return jnp.concatenate([broken, jnp.ones(1, free.dtype)]) * jnp.exp(log_left)

    def unconstrain(self, value: Array) -> Array:
        later = jnp.cumsum(value[::-1])[::-1][1:]  # what is left after each piece
        left = jnp.arange(self.size, 0, -1, dtype=value.dtype)
        return jnp.log(value[:-1]) - jnp.log(later) + jnp.log(left)

    def log_det(self, free: Array) -> Scalar:
        logits = self._logits(free)
        log_left = jnp.concatenate([jnp.zeros(1, free.dtype), jnp.cumsum(jax.nn.log_sigmoid(-logits))[:-1]])
        return jnp.sum(jax.nn.log_sigmoid(logits) + jax.nn.log_sigmoid(-logits) + log_left)


class Ordered(Constraint):
    """k numbers in ascending order: the first, then what each is above the one before."""

    shape: tuple[int, ...] = eqx.field(static=True)

    def constrain(self, free: Array) -> Array:
        return jnp.cumsum(jnp.concatenate([free[:1], jnp.exp(free[1:])]))

    def unconstrain(self, value: Array) -> Array:
        return jnp.concatenate([value[:1], jnp.log(jnp.diff(value))])

    def log_det(self, free: Array) -> Scalar:
        return jnp.sum(free[1:])


class Correlation(Constraint):
    """A k × k correlation matrix, by its Cholesky factor: each row a point on the half sphere, from partial
    correlations tanh(z) (Lewandowski, Kurowicka and Joe 2009)."""

    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def size(self) -> int:
        return self.shape[0] * (self.shape[0] - 1) // 2

    def _factor(self, free: Array) -> Array:
        k = self.shape[0]
        z = jnp.zeros((k, k), free.dtype).at[jnp.tril_indices(k, -1)].set(free)
        # what the sphere leaves for later columns, Π √(1 − tanh² z), by logarithms: it has a derivative even at z = 50
        left = jnp.exp(jnp.cumsum(0.5 * _log_left(z), axis=1))
        before = jnp.concatenate([jnp.ones((k, 1), free.dtype), left[:, :-1]], axis=1)
        return jnp.tril(jnp.tanh(z) * before, -1) + jnp.diag(jnp.diagonal(before))

    def constrain(self, free: Array) -> Array:
        factor = self._factor(free)
        return factor @ factor.T

    def unconstrain(self, value: Array) -> Array:
        k = self.shape[0]
        factor = jnp.linalg.cholesky(value)
        left = jnp.sqrt(jnp.maximum(1 - jnp.cumsum(factor**2, axis=1), 0.0))
        before = jnp.concatenate([jnp.ones((k, 1), value.dtype), left[:, :-1]], axis=1)
        partial = jnp.tril(factor, -1) / jnp.where(before > 0, before, 1.0)
        return jnp.arctanh(partial[jnp.tril_indices(k, -1)])

    def log_det(self, free: Array) -> Scalar:
        k = self.shape[0]
        _, columns = jnp.tril_indices(k, -1)
        # ∂(entries)/∂(partials) is triangular, with (1 − p²)^((k − 2 − column)/2) for each; and ∂p/∂z = 1 − p²
        return jnp.sum(_log_left(free) * (1 + 0.5 * (k - 2 - columns)))


def _log_left(z: Array) -> Array:
    """log(1 − tanh² z)"""
    return 2 * (jnp.log(2.0) - z - jax.nn.softplus(-2 * z))


positive = Positive()
"""Numbers above zero: `positive` is one, `positive(3)` a vector of three."""


def interval(low: float, high: float) -> Interval:
    """Numbers between `low` and `high`; `interval(0, 1)(3)` is a vector of three."""
    known = all(isinstance(end, int | float | np.integer | np.floating) for end in (low, high))
    if not known or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ModelError(f"`interval(low, high)` needs two finite numbers, the lower one first; got {low!r}, {high!r}.")
    return Interval(low=float(low), high=float(high))


def simplex(k: int) -> Simplex:
    """k positive shares that sum to one."""
    return Simplex((_at_least_two("simplex", k),))


def ordered(k: int) -> Ordered:
    """k numbers in ascending order."""
    return Ordered((_at_least_two("ordered", k),))


def correlation(k: int) -> Correlation:
    """A correlation matrix of k variables."""
    return Correlation((_at_least_two("correlation", k),) * 2)


def _at_least_two(name: str, k: int) -> int:
    if not isinstance(k, int) or isinstance(k, bool) or k < 2:
        raise ModelError(f"`{name}(k)` needs a whole number of at least 2; got {k!r}.")
    return k


def _checked_shape(shape) -> tuple[int, ...]:
    if len(shape) == 1 and isinstance(shape[0], tuple | list):
        shape = tuple(shape[0])
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape):
        raise ModelError(f"a shape is made of whole numbers above zero; got {shape!r}.")
    return tuple(shape)
