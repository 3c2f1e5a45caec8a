"""The fields whose combination is the collocation velocity: monomials of the place, alone and times the score."""

import itertools
import math

import equinox as eqx
from jax import numpy as jnp
from jaxtyping import Array, Float

from pfbr.typing import Point

PARTICLES_PER_FIELD = 5  # fewer, and the equations fit the accident of the draw


class Fields(eqx.Module):
    """Which fields there are: monomials in w up to `degree`, and the likelihood's own score times those up to
    `own_degree` (−1: none), each along every axis.

    The likelihood's own score is what knows where a thin curved posterior runs.
    """

    dim: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    own_degree: int = eqx.field(static=True)

    @property
    def num(self) -> int:
        """How many fields."""
        monomials = math.comb(self.dim + self.degree, self.dim)
        own = math.comb(self.dim + self.own_degree, self.dim) if self.own_degree >= 0 else 0
        return self.dim * (monomials + self.dim * own)

    def __call__(self, w: Point, own: Point) -> Float[Array, " f"]:
        """The scalar functions; field (f, a) is function f along axis a."""
        functions = _monomials(w, self.degree)
        if self.own_degree >= 0:
            functions = jnp.concatenate([functions, jnp.outer(_monomials(w, self.own_degree), own).reshape(-1)])
        return functions


def choose_fields(dim: int, num_particles: int) -> Fields:
    """The richest fields that the particles can tell apart; with very few, affine ones."""
    for degree, own_degree in ((3, 1), (3, -1), (2, 0), (2, -1)):
        fields = Fields(dim, degree, own_degree)
        if fields.num * PARTICLES_PER_FIELD <= num_particles:
            return fields
    return Fields(dim, 1, -1)


def _monomials(w: Point, degree: int) -> Float[Array, " m"]:
    powers = [jnp.ones((), w.dtype)]
    for total in range(1, degree + 1):
        powers += [
            math.prod((w[i] for i in chosen), start=jnp.ones((), w.dtype))
            for chosen in itertools.combinations_with_replacement(range(w.shape[0]), total)
        ]
    return jnp.stack(powers)
