"""Small deformations of an image: smooth displacements and a translation, fixed by the image's index and a number.

Each pixel of the new image looks up its value at its own place plus a displacement, by bilinear interpolation. The
displacement is a sum of Gaussian bumps on a coarse grid with normal coefficients, scaled so that its standard deviation
is the same at every pixel, plus a translation that is uniform in a square. Variant 0 is the original.

The random numbers come from a counter hashed with integers alone (the finaliser of Steele, Lea and Flood's SplitMix64),
not from a library's generator: they are the same on every machine and with every version.
"""

import functools

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.paper.digits.images import SIDE

GRID = 5  # bumps along each side
BUMP_WIDTH = 5.0  # pixels: about the distance of two bumps, so that the field is smooth
STRENGTH = 1.0  # pixels: standard deviation of the displacement
TRANSLATION = 2.0  # pixels: the largest translation along each axis
_NUMBERS = 2 * GRID**2 + 2
_GOLDEN = 0x9E3779B97F4A7C15
_PADDED = SIDE + 3  # one dark pixel before, two after: a place beyond the border reads zero


def deform(images: np.ndarray, indices: np.ndarray, variant: int) -> np.ndarray:
    """Variant number `variant` of each image (n, 28, 28), 8 bits; `indices` (n,) are the images' own numbers."""
    images, indices = np.asarray(images), np.asarray(indices)
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE) or images.dtype != np.uint8:
        raise InputError(f"`images` must be 8-bit, (n, {SIDE}, {SIDE}); got {images.dtype}, {images.shape}.")
    if indices.shape != images.shape[:1] or (indices < 0).any():
        raise InputError(f"`indices` must hold one number ≥ 0 for each of {len(images)} images; got {indices.shape}.")
    if variant < 0:
        raise InputError(f"`variant` must be at least 0, the original; got {variant}.")
    if variant == 0:
        return images.copy()
    return np.asarray(_warp(images, _uniforms(indices, variant))).reshape(images.shape)


def _hash(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _uniforms(indices: np.ndarray, variant: int) -> np.ndarray:
    """Numbers in (0, 1), (n, numbers): 24 bits each, which is what float32 holds."""
    start = _hash(indices.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(1))  # unsigned integers wrap around
    start = _hash(start + np.asarray([variant], np.uint64) * np.uint64(_GOLDEN))
    counter = np.arange(1, _NUMBERS + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    bits = _hash(start[:, None] + counter) >> np.uint64(40)
    return (bits.astype(np.float32) + np.float32(0.5)) / np.float32(2**24)


@functools.cache
def _bumps() -> np.ndarray:
    """(bumps, pixels): squares sum to one at every pixel."""
    centres, places = np.linspace(1.5, SIDE - 2.5, GRID), np.arange(SIDE)
    along = np.exp(-0.5 * ((places - centres[:, None]) / BUMP_WIDTH) ** 2)
    field = np.einsum("ai,bj->abij", along, along).reshape(GRID**2, SIDE**2)
    return (field / np.sqrt(np.sum(field**2, axis=0))).astype(np.float32)


@jax.jit
def _warp(images, uniforms):
    coefficients = jax.scipy.special.ndtri(uniforms[:, :-2]).reshape(-1, 2, GRID**2)
    moved = STRENGTH * jnp.einsum("nck,kp->ncp", coefficients, _bumps())
    moved += TRANSLATION * (2 * uniforms[:, -2:, None] - 1)
    rows, columns = jnp.divmod(jnp.arange(SIDE**2), SIDE)
    y, x = moved[:, 0] + rows, moved[:, 1] + columns
    top, left = jnp.floor(y), jnp.floor(x)
    down, right = y - top, x - left
    padded = jnp.pad(images, ((0, 0), (1, 2), (1, 2))).reshape(images.shape[0], -1)
    place = jnp.clip(top + 1, 0, SIDE + 1).astype(jnp.int32) * _PADDED
    place += jnp.clip(left + 1, 0, SIDE + 1).astype(jnp.int32)

    def at(offset):
        return jnp.take_along_axis(padded, place + offset, axis=1, mode="promise_in_bounds").astype(jnp.float32)

    above = (1 - right) * at(0) + right * at(1)
    below = (1 - right) * at(_PADDED) + right * at(_PADDED + 1)
    return jnp.round((1 - down) * above + down * below).astype(jnp.uint8)
