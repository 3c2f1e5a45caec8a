"""One random log likelihood of a vector of any length: what kinds of them are made of."""

from collections.abc import Callable

import equinox as eqx
import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.typing import Key, Point, Scalar

LEAST_SHARP, MOST_SHARP = 0.3, 6.0  # standard deviations of the prior that one of the noise covers: vague to sharp


class Term(eqx.Module):
    """Which kind of likelihood, and the numbers that every kind makes of it what it likes.

    `truth` is a draw of the unknown: kinds put their observation where this one would be seen, so that an observation
    fits the prior as those of a real stream do.
    """

    kind: Int[Array, ""]
    on: Float[Array, ""]  # 0: there is no such likelihood
    directions: Float[Array, "3 d"]  # of length one
    centre: Point
    truth: Point
    sharpness: Scalar
    normals: Float[Array, "4"]
    uniforms: Float[Array, "4"]

    def along(self, which: int, x: Point) -> Scalar:
        """The coordinate of x in one of the directions."""
        return self.directions[which] @ x

    def off(self, which: int, x: Point) -> Scalar:
        """How far x lies from the truth in one of the directions."""
        return self.directions[which] @ (x - self.truth)


Kind = Callable[[Point, Term], Scalar]


def draw_term(key: Key, kinds: Array, truth: Point, on: Scalar) -> Term:
    """One of these kinds, with random numbers."""
    keys = jax.random.split(key, 6)
    d = truth.shape[0]
    directions = jax.random.normal(keys[0], (3, d))
    low, high = jnp.log(LEAST_SHARP), jnp.log(MOST_SHARP)
    return Term(
        jax.random.choice(keys[1], kinds),
        on,
        directions / jnp.linalg.norm(directions, axis=1, keepdims=True),
        1.5 * jax.random.normal(keys[2], (d,)),
        truth,
        jnp.exp(jax.random.uniform(keys[3], minval=low, maxval=high)),
        jax.random.normal(keys[4], (4,)),
        jax.random.uniform(keys[5], (4,)),
    )


def log_likelihood(
    kinds: tuple[Kind, ...], terms: Term, x: Point, powers: Float[Array, " terms"] | float = 1.0
) -> Scalar:
    """The sum of several terms, which lie along a leading axis, each to a power. Those that are off cost nothing."""

    def add(total, one):
        term, power = one
        value = jax.lax.switch(
            jnp.where(term.on > 0, term.kind, len(kinds)), (*kinds, lambda x, term: jnp.zeros((), x.dtype)), x, term
        )
        return total + power * value, None

    powers = jnp.broadcast_to(jnp.asarray(powers, x.dtype), terms.on.shape)
    return jax.lax.scan(add, jnp.zeros((), x.dtype), (terms, powers))[0]
