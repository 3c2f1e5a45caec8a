"""Kinds of likelihoods to choose settings by: neither learned from nor tested on."""

import jax
from jax import numpy as jnp

from pfbr.training.problems.term import Kind, Term
from pfbr.typing import Point, Scalar


def waiting(x: Point, term: Term) -> Scalar:
    """A waiting time whose log rate is a coordinate."""
    log_rate = lambda p: jnp.clip(2 * term.along(0, p), -8.0, 8.0)
    waited = -jnp.log(jnp.maximum(term.uniforms[0], 1e-3)) * jnp.exp(-log_rate(term.truth))
    return log_rate(x) - waited * jnp.exp(log_rate(x))


def cubic(x: Point, term: Term) -> Scalar:
    """A coordinate and its cube, with normal noise."""
    height = lambda p: term.along(0, p) + 0.5 * term.along(0, p) ** 3
    return -0.5 * (term.sharpness * (height(x) - height(term.truth)) - term.normals[0]) ** 2


def elbow(x: Point, term: Term) -> Scalar:
    """Nothing below a threshold, straight above, and a slope in another direction, with heavy-tailed noise."""
    height = lambda p: jax.nn.softplus(3 * term.along(0, p)) / 1.5 + 0.5 * term.along(1, p)
    return -2.5 * jnp.log1p((term.sharpness * (height(x) - height(term.truth)) - term.normals[0]) ** 2 / 4)


KINDS: tuple[Kind, ...] = (waiting, cubic, elbow)
