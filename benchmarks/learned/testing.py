"""The kinds of likelihoods that the general map is judged on, and nothing else is done with them.

Training cannot import this file: it is no part of the package, and `python -m benchmarks.learned train` does not load
it (tests/training/general/test_apart.py looks).
"""

import jax
from jax import numpy as jnp

from pfbr.training.problems.term import Kind, Term
from pfbr.typing import Point, Scalar


def counts(x: Point, term: Term) -> Scalar:
    """Poisson counts with a logarithmic link."""
    log_rate = lambda p: jnp.clip(term.along(0, p) + 0.5 * jnp.log(term.sharpness), -20.0, 6.0)
    count = jnp.round(jnp.exp(log_rate(term.truth) + 0.5 * term.normals[0]))
    return count * log_rate(x) - jnp.exp(log_rate(x))


def banana(x: Point, term: Term) -> Scalar:
    """A coordinate and the square of another, with normal noise."""
    height = lambda p: term.along(0, p) + 0.5 * term.along(1, p) ** 2
    return -0.5 * (term.sharpness * (height(x) - height(term.truth)) - term.normals[0]) ** 2


def scale(x: Point, term: Term) -> Scalar:
    """A normal whose mean and log standard deviation are both unknown."""
    log_scale = lambda p: jnp.clip(term.along(1, p), -4.0, 4.0)
    off = term.off(0, x) - term.normals[0] * jnp.exp(log_scale(term.truth))
    return -0.5 * off**2 * jnp.exp(-2 * log_scale(x)) - log_scale(x)


def phase(x: Point, term: Term) -> Scalar:
    """An angle that grows with a coordinate, with von Mises noise: periodic."""
    return term.sharpness * jnp.cos(2 * term.off(0, x) - term.normals[0] / jnp.maximum(term.sharpness, 1.0))


def bearing(x: Point, term: Term) -> Scalar:
    """The direction in which a place lies, seen from a point, with normal noise."""
    angle = lambda p: jnp.arctan2(term.along(0, p - term.centre) + 1e-3, term.along(1, p - term.centre) + 1e-3)
    off = angle(x) - angle(term.truth) - term.normals[0] / (2 * term.sharpness)
    wrapped = jnp.arctan2(jnp.sin(off), jnp.cos(off))
    return -0.5 * (2 * term.sharpness * wrapped) ** 2


def volatility(x: Point, term: Term) -> Scalar:
    """A return whose variance is the exponential of a coordinate."""
    level = lambda p: jnp.clip(1.5 * term.along(0, p), -8.0, 8.0)
    return -0.5 * term.normals[0] ** 2 * jnp.exp(level(term.truth) - level(x)) - 0.5 * level(x)


def swap(x: Point, term: Term) -> Scalar:
    """One of two components, the second of which lies at the sum of two coordinates: the paper's mixture."""
    first, second = term.along(0, term.truth), term.along(0, term.truth) + term.along(1, term.truth)
    seen = jnp.where(term.uniforms[0] < 0.5, first, second) + term.normals[0] / term.sharpness
    density = lambda mean: -0.5 * (term.sharpness * (seen - mean)) ** 2
    return jnp.logaddexp(density(term.along(0, x)), density(term.along(0, x) + term.along(1, x)))


def largest(x: Point, term: Term) -> Scalar:
    """The larger of two coordinates, with normal noise."""
    height = lambda p: 0.2 * jax.nn.logsumexp(5 * (term.directions[:2] @ p))
    return -0.5 * (term.sharpness * (height(x) - height(term.truth)) - term.normals[0]) ** 2


KINDS: tuple[Kind, ...] = (counts, banana, scale, phase, bearing, volatility, swap, largest)
