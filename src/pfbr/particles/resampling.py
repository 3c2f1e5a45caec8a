"""From weighted particles to equally weighted ones: which ancestors to keep, and when."""

from collections.abc import Callable

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.errors import InputError
from pfbr.particles.particles import Particles, ess
from pfbr.typing import Key, PerParticle

FEW, ROWS = 1024, 128  # numbers that `cumsum` sums fast enough; rows side by side otherwise


def multinomial(key: Key, log_weights: PerParticle, num: int) -> Int[Array, " m"]:
    """Independent draws of ancestors."""
    return _ancestors(log_weights, jax.random.uniform(key, (num,)))


def systematic(key: Key, log_weights: PerParticle, num: int) -> Int[Array, " m"]:
    """One uniform shift of an even comb: particle i is kept ⌊N w_i⌋ or ⌈N w_i⌉ times (Carpenter et al. 1999).

    An even comb needs no search: the teeth below each sum of weights are counted by a division, and the ancestor of a
    tooth is the number of sums below it.
    """
    below = prefix_sums(jnp.exp(log_weights))
    shift = jax.random.uniform(key, dtype=below.dtype)
    teeth = jnp.ceil(num * (below / below[-1]) - shift)
    teeth = jnp.clip(jnp.where(jnp.isnan(teeth), num, teeth), 0, num).astype(jnp.int32)
    passed = jnp.zeros(num + 1, jnp.int32).at[teeth].add(1)
    return jnp.minimum(prefix_sums(passed[:num]), log_weights.shape[0] - 1)


def prefix_sums(values: Float[Array, " n"] | Int[Array, " n"]) -> Float[Array, " n"] | Int[Array, " n"]:
    """Σ_{j ≤ i} of them. Many are summed in rows side by side, which takes a fifth of the time of `cumsum`."""
    n = values.shape[0]
    if n <= FEW:
        return jnp.cumsum(values)
    columns = -(-n // ROWS)
    table = jnp.pad(values, (0, ROWS * columns - n)).reshape(ROWS, columns)

    def add(total, column):
        total = total + column
        return total, total

    last, sums = jax.lax.scan(add, jnp.zeros(ROWS, values.dtype), table.T)
    before = jnp.concatenate([jnp.zeros(1, values.dtype), jnp.cumsum(last)[:-1]])
    return (sums.T + before[:, None]).reshape(-1)[:n]


def _ancestors(log_weights: PerParticle, positions: Float[Array, " m"]) -> Int[Array, " m"]:
    # float32 sums of weights miss 1 by a little; dividing by the last one keeps every position inside
    below = jnp.cumsum(jnp.exp(log_weights))
    found = jnp.searchsorted(below / below[-1], positions, side="right")
    return jnp.minimum(found, log_weights.shape[0] - 1)


SCHEMES: dict[str, Callable] = {"multinomial": multinomial, "systematic": systematic}


def check_scheme(name: str) -> str:
    """The name, or an error that lists the schemes there are."""
    if name not in SCHEMES:
        raise InputError(f"`resampling` must be one of {', '.join(SCHEMES)}; got {name!r}.")
    return name


def check_threshold(threshold: float) -> float:
    """The threshold, or an error that says what it means."""
    if not 0.0 <= threshold <= 1.0:
        raise InputError(
            f"`threshold` is the share of the particles below which ESS triggers resampling, between 0 (never) and "
            f"1 (always); got {threshold}."
        )
    return threshold


def resample(key: Key, particles: Particles, scheme: str) -> Particles:
    """As many equally weighted particles as before."""
    n = particles.num_particles
    kept = SCHEMES[scheme](key, particles.log_weights, n)
    density = None if particles.log_density is None else particles.log_density[kept]
    return Particles(particles.points[kept], jnp.full_like(particles.log_weights, -jnp.log(float(n))), density)


def when_poor(particles: Particles, threshold: float, renew: Callable[[Particles], Particles]) -> Particles:
    """`renew(particles)` where the effective sample size is at most `threshold` of their number, else as they are."""
    poor = ess(particles.log_weights) <= threshold * particles.num_particles * (1 + 1e-5)
    return jax.lax.cond(poor, renew, lambda p: p, particles)
