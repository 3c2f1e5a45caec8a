"""Systematic resampling of one set of particles that is spread over devices.

Every device counts how many of the N slots lie below each of its particles, in sums of twice the precision and then in
whole numbers, so that 10⁷ single-precision weights lose nothing. Particles then go round in a ring: each device takes
what its own slots ask for from every part that passes, and never holds more than two parts.
"""

import jax
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.typing import Key


def resampled(key: Key, points: Array, log_weights: Array, axis: str, devices: int) -> Array:
    """This device's part of the new, equally weighted points; all devices call it, with the same key."""
    n = log_weights.shape[0]
    upto = slots_below(jax.random.uniform(key), log_weights, axis, devices)
    ends = jax.lax.all_gather(upto[-1], axis)  # (devices,): where the slots of each part end
    rank = jax.lax.axis_index(axis)
    slots = rank * n + jnp.arange(n)
    begins = jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])
    ring = [(place, (place + 1) % devices) for place in range(devices)]
    found, passing, counts = jnp.zeros_like(points), points, upto
    for turn in range(devices):
        owner = (rank - turn) % devices
        inside = (slots >= begins[owner]) & (slots < ends[owner])
        ancestor = jnp.minimum(jnp.searchsorted(counts, slots, side="right"), n - 1)
        found = jnp.where(inside[:, None], passing[ancestor], found)
        if turn + 1 < devices:
            passing, counts = (jax.lax.ppermute(leaf, axis, ring) for leaf in (passing, counts))
    return found


def slots_below(shift: Array, log_weights: Array, axis: str, devices: int) -> Array:
    """How many of the slots (0, 1, …, N − 1) + shift lie below the running sum of N · weight, at each particle."""
    n = log_weights.shape[0]
    total = n * devices
    weights = jnp.exp(log_weights - jax.lax.pmax(jnp.max(log_weights), axis))
    weights = weights * (total / jax.lax.psum(jnp.sum(weights), axis))
    high, low = _running_sum(weights)
    highs, lows = (jax.lax.all_gather(part[-1], axis) for part in (high, low))
    rank = jax.lax.axis_index(axis)
    up_high, up_low = _running_sum(highs, lows)
    first = rank == 0
    begin = jnp.where(first, 0.0, up_high[rank - 1]), jnp.where(first, 0.0, up_low[rank - 1])
    high, low = _add((high, low), begin)
    whole = jnp.floor(high)
    below = whole.astype(jnp.int32) + jnp.ceil((high - whole) + low - shift).astype(jnp.int32)
    last = (rank == devices - 1) & (jnp.arange(n) == n - 1)  # rounding shall leave no slot without a particle
    return jnp.where(last, total, jnp.clip(below, 0, total))


def _running_sum(high: Array, low: Array | None = None) -> tuple[Array, Array]:
    """As a number and what it lost by rounding (Knuth 1969)."""
    return jax.lax.associative_scan(_add, (high, jnp.zeros_like(high) if low is None else low))


def _add(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    total = a[0] + b[0]
    second = total - a[0]
    lost = (a[0] - (total - second)) + (b[0] - second)
    return total, lost + a[1] + b[1]
