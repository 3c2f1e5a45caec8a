"""The kinds of likelihoods that the general map learns from; those it is judged on are elsewhere, and no kind is
in both."""

import jax
from jax import numpy as jnp

from pfbr.training.problems.term import Kind, Term
from pfbr.typing import Point, Scalar


def gaussian(x: Point, term: Term) -> Scalar:
    """Linear, with normal noise."""
    return -0.5 * (term.sharpness * term.off(0, x) - term.normals[0]) ** 2


def three_directions(x: Point, term: Term) -> Scalar:
    """Linear in three directions, with noise of three sizes."""
    seen = term.directions @ (x - term.truth)
    return -0.5 * jnp.sum((term.sharpness * term.uniforms[:3] * seen - term.normals[:3]) ** 2)


def logistic(x: Point, term: Term) -> Scalar:
    """Two classes: a monotone link."""
    logit = lambda p: 2 * term.sharpness * (term.along(0, p) - term.normals[1])
    sign = jnp.where(term.uniforms[0] < jax.nn.sigmoid(logit(term.truth)), 1.0, -1.0)
    return jax.nn.log_sigmoid(sign * logit(x))


def student(x: Point, term: Term) -> Scalar:
    """Linear, with heavy-tailed noise."""
    freedom = 1 + 6 * term.uniforms[0]
    off = term.sharpness * term.off(0, x) - term.normals[0]
    return -0.5 * (freedom + 1) * jnp.log1p(off**2 / freedom)


def distance(x: Point, term: Term) -> Scalar:
    """The distance to a point, with normal noise."""
    far = lambda p: jnp.sqrt(jnp.sum((p - term.centre) ** 2) + 1e-3)
    return -0.5 * (term.sharpness * (far(x) - far(term.truth)) - term.normals[0]) ** 2


def ring(x: Point, term: Term) -> Scalar:
    """The distance to a point, seen in three directions only."""
    far = lambda p: jnp.sqrt(jnp.sum((term.directions @ (p - term.centre)) ** 2) + 1e-2)
    return -0.5 * (term.sharpness * (far(x) - far(term.truth)) - term.normals[0]) ** 2


def wave(x: Point, term: Term) -> Scalar:
    """A straight line and a wave in another direction, with normal noise."""
    size, pitch = 1.5 * term.uniforms[0], 0.5 + 2 * term.uniforms[1]
    height = lambda p: term.along(0, p) + size * jnp.sin(pitch * term.along(1, p) + 3 * term.normals[1])
    return -0.5 * (term.sharpness * (height(x) - height(term.truth)) - term.normals[0]) ** 2


def saturating(x: Point, term: Term) -> Scalar:
    """A response that levels off on both sides, with normal noise."""
    height = lambda p: jnp.tanh((0.5 + 1.5 * term.uniforms[0]) * term.along(0, p) + 0.5 * term.normals[1])
    return -0.5 * (term.sharpness * (height(x) - height(term.truth)) - term.normals[0]) ** 2


def product(x: Point, term: Term) -> Scalar:
    """The product of two coordinates, with normal noise."""
    height = lambda p: (term.along(0, p) + 0.5 * term.normals[1]) * term.along(1, p)
    return -0.5 * (term.sharpness * (height(x) - height(term.truth)) - term.normals[0]) ** 2


def heteroscedastic(x: Point, term: Term) -> Scalar:
    """Linear, with noise that grows in another direction."""
    noise = lambda p: 0.2 + jax.nn.softplus(1.5 * term.along(1, p) + term.normals[1])
    scaled = (term.sharpness * term.off(0, x) - term.normals[0] * noise(term.truth)) / noise(x)
    return -0.5 * scaled**2 - jnp.log(noise(x))


def two_sources(x: Point, term: Term) -> Scalar:
    """One of two things was seen, nobody knows which."""
    share = 0.1 + 0.8 * term.uniforms[0]
    one = -0.5 * (term.sharpness * term.off(0, x) - term.normals[0]) ** 2
    other = -0.5 * (term.sharpness * (term.off(1, x) - term.normals[1])) ** 2
    return jnp.logaddexp(jnp.log(share) + one, jnp.log1p(-share) + other)


KINDS: tuple[Kind, ...] = (
    gaussian,
    three_directions,
    logistic,
    student,
    distance,
    ring,
    wave,
    saturating,
    product,
    heteroscedastic,
    two_sources,
)
