"""Quasi-Monte Carlo: scrambled Sobol points, made normal and matched in their first two moments."""

import functools
from collections.abc import Callable
from importlib import resources
from typing import cast

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.models.base import Model, StateSpaceModel, offers
from pfbr.particles.whitening import whitening_of
from pfbr.typing import Key, Point, Points

FEISTEL_ROUNDS, FEWEST_BITS = 3, 6  # of both halves; fewer bits have too few orders
MAX_SOBOL_DIM = 64  # of the table; beyond it draws are i.i.d., which in so many dimensions is no worse


@functools.lru_cache(maxsize=1)
def _directions() -> np.ndarray:
    """Direction integers (dim, 32) of Sobol's sequence after Joe and Kuo (2008), new-joe-kuo-6.21201."""
    with resources.as_file(resources.files("pfbr.particles") / "sobol.npz") as path, np.load(path) as stored:
        return stored["directions"]


@functools.lru_cache(maxsize=32)
def _sobol_integers(num: int, dim: int) -> np.ndarray:
    """The first points of Sobol's sequence as 32-bit integers; they depend on shapes alone, so they are constants."""
    index = np.arange(num, dtype=np.uint32)
    gray = index ^ (index >> np.uint32(1))
    points = np.zeros((num, dim), np.uint32)
    for bit in range(max(1, int(num).bit_length())):
        chosen = (gray >> np.uint32(bit)) & np.uint32(1)
        points ^= chosen[:, None] * _directions()[:dim, bit]
    return points


def _reverse_bits(x: Array) -> Array:
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        m = jnp.uint32(mask)
        x = ((x >> shift) & m) | ((x & m) << shift)
    return (x >> 16) | (x << 16)


def _owen_scramble(x: Array, seed: Array) -> Array:
    """A nested uniform scramble by hashing: each bit is flipped at random, depending only on the bits above it."""
    x = _reverse_bits(x)
    x = x + seed
    for factor in (0x6C50B47C, 0xB82F1E52, 0xC7AFE638, 0x8D22F6E6):
        x = x ^ (x * jnp.uint32(factor))  # even factors: a bit is touched only by lower ones (reversed: higher)
    return _reverse_bits(x)


def sobol_points(num: int, dim: int) -> np.ndarray:
    """The first points of Sobol's sequence in [0, 1), as they are: shifted at random, modulo 1, each is a fair draw."""
    return _sobol_integers(num, dim) / 2.0**32


def sobol_normal(key: Key, num: int, dim: int) -> Points:
    """`num` standard normal vectors that fill space evenly; each one by itself is a fair draw."""
    return _normal(_owen_scramble(jnp.asarray(_sobol_integers(num, dim)), jax.random.bits(key, (dim,), jnp.uint32)))


def shuffled_sobol_normal(key: Key, num: int, dim: int) -> Points:
    """The same in random order, for noise: particles too are made in Sobol's order, and must say nothing of it."""
    draw_key, order_key = jax.random.split(key)
    return sobol_normal(draw_key, num, dim)[random_order(order_key, num)]


def random_order(key: Key, num: int) -> Array:
    """A random permutation of 0 … num − 1 by a Feistel network: sorting random numbers takes ten times as long as all
    the rest of the noise."""
    bits = max(FEWEST_BITS, (num - 1).bit_length())
    low = bits // 2
    seeds = jax.random.bits(key, (FEISTEL_ROUNDS, 2), jnp.uint32)

    def permuted(places: Array) -> Array:
        """All numbers of so many bits, each half of them changed by what the other one says."""
        left, right = places >> low, places & (2**low - 1)
        for seed in seeds:
            left = left ^ (_hashed(right + seed[0]) >> (32 - (bits - low)))
            right = right ^ (_hashed(left + seed[1]) >> (32 - low))
        return (left << low) | right

    places = permuted(jnp.arange(num, dtype=jnp.uint32))
    if num == 2**bits:
        return places
    # what leads outside goes on until it is back inside
    outside = lambda places: jnp.any(places >= num)
    return jax.lax.while_loop(outside, lambda p: jnp.where(p >= num, permuted(p), p), places)


def _hashed(x: Array) -> Array:
    """Every bit of the result depends on every bit of x (the last steps of MurmurHash3)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    return x ^ (x >> 16)


def _normal(bits: Array) -> Points:
    # 24 bits are what float32 holds; the half keeps clear of 0, and the minimum of 1, to which the highest is rounded
    unit = jnp.minimum(((bits >> 8).astype(jnp.float32) + 0.5) / 2.0**24, 1.0 - 2.0**-24)
    return jax.scipy.special.ndtri(unit).astype(jnp.result_type(float))


def match_moments(noise: Points, *, apart_from: Points | None = None) -> Points:
    """Noise with mean exactly zero, covariance exactly one, and, if asked, no correlation with a set of points.

    With linear dynamics the predicted mean and covariance are then exactly those of the formula. Where there are
    too few particles to do so (fewer than twice the number of conditions), less is matched.
    """
    n, d = noise.shape
    if n < 2:
        return noise
    noise = noise - jnp.mean(noise, axis=0)
    if apart_from is not None and n > 4 * d + 2:
        z = whitening_of(apart_from).whiten(apart_from)
        noise = noise - z @ (z.T @ noise) / n
    if n > 2 * d + 1:
        noise = whitening_of(noise).whiten(noise)
    return noise


def draw_prior(key: Key, model: Model, num: int, *, qmc: bool = True) -> Points:
    """The first particles: evenly spread where the model can turn normals into its prior, i.i.d. otherwise."""
    if qmc and offers(model, "prior_from_normal") and num > 0 and int(model.dim) <= MAX_SOBOL_DIM:
        from_normal = cast(Callable[[Point], Point], model.prior_from_normal)  # it is offered, so never None
        return jax.vmap(from_normal)(match_moments(sobol_normal(key, num, int(model.dim))))
    return jax.vmap(model.sample_prior)(jax.random.split(key, num))


def draw_transition(key: Key, model: StateSpaceModel, points: Points, *, qmc: bool = True) -> Points:
    """The particles after the dynamics, one step on."""
    if qmc and offers(model, "transition_from_normal"):
        from_normal = cast(Callable[[Point, Point], Point], model.transition_from_normal)
        return jax.vmap(from_normal)(points, transition_noise(key, points))
    return jax.vmap(model.sample_transition)(jax.random.split(key, points.shape[0]), points)


def transition_noise(key: Key, points: Points, *, qmc: bool = True) -> Points:
    """Standard normals, one for each of the points; even ones are uncorrelated with the points."""
    num, dim = points.shape
    if not qmc or dim > MAX_SOBOL_DIM:
        return jax.random.normal(key, (num, dim), points.dtype)
    return match_moments(shuffled_sobol_normal(key, num, dim), apart_from=points)
