"""The constraint of a NumPyro site: its own bijection from free numbers, with its own Jacobian."""

import math
from typing import Any

import equinox as eqx
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array
from numpyro.distributions import biject_to

from pfbr.errors import ModelError
from pfbr.models.constraints import Constraint
from pfbr.models.numpyro.sites import Site, shape_of
from pfbr.typing import Scalar


class Held:
    """Something that is itself and nothing else: equal and hashed by identity, as a static field must be."""

    def __init__(self, value: Any):
        self.value = value


class Bijection(Constraint):
    """As NumPyro's samplers have it, so that densities of the free numbers are the same as theirs."""

    shape: tuple[int, ...] = eqx.field(static=True)
    free_shape: tuple[int, ...] = eqx.field(static=True)
    transform: Held = eqx.field(static=True)

    @property
    def size(self) -> int:
        return math.prod(self.free_shape)

    def constrain(self, free: Array) -> Array:
        return jnp.asarray(self.transform.value(free.reshape(self.free_shape))).reshape(self.shape)

    def unconstrain(self, value: Array) -> Array:
        return jnp.reshape(self.transform.value._inverse(value), (self.size,))

    def log_det(self, free: Array) -> Scalar:
        inner = free.reshape(self.free_shape)
        transform = self.transform.value
        return jnp.sum(jnp.asarray(transform.log_abs_det_jacobian(inner, transform(inner)), free.dtype))


def bijection_of(site: Site) -> Bijection:
    """From free numbers to the support of a site's distribution."""
    try:
        transform = biject_to(site["fn"].support)
        shape = shape_of(site)
        return Bijection(shape, tuple(transform.inverse_shape(shape)), Held(transform))
    except NotImplementedError:
        raise ModelError(
            f"NumPyro has no bijection onto the support of the site {site['name']!r} ({type(site['fn']).__name__})."
        ) from None


def same_map(first: Bijection, second: Bijection) -> bool:
    """Whether two bijections are one and the same, seen at a few free numbers."""
    if (first.shape, first.free_shape) != (second.shape, second.free_shape):
        return False
    free = jnp.asarray(np.linspace(-1.5, 2.0, first.size), jnp.result_type(float))
    return bool(jnp.allclose(first.constrain(free), second.constrain(free), rtol=1e-5, atol=1e-6))


def at_free_numbers(level: float) -> Any:
    """A value for each site that lies inside of its support: what the bijection makes of equal free numbers."""

    def value_of(site: Site) -> Array:
        found = bijection_of(site)
        return found.constrain(jnp.full((found.size,), level, jnp.result_type(float)))

    return value_of


def is_plain(found: Bijection) -> bool:
    """Whether nothing is constrained."""
    free = jnp.asarray(np.linspace(-1.5, 2.0, found.size), jnp.result_type(float))
    return found.shape == found.free_shape and bool(jnp.all(found.constrain(free).reshape(-1) == free))
