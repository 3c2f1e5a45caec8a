"""From weighted particles to equally weighted ones: which ancestors to keep, and when."""

from collections.abc import Callable

import jax
from jax import numpy as jnp
from jaxtyping import Array, Float, Int

from pfbr.errors import InputError
from pfbr.particles.particles import Particles, ess
from pfbr.typing import Key, PerParticle


def multinomial(key: Key, log_weights: PerParticle, num: int) -> Int[Array, " m"]:
    """Independent draws of ancestors."""
    return _ancestors(log_weights, jax.random.uniform(key, (num,)))


def systematic(key: Key, log_weights: PerParticle, num: int) -> Int[Array, " m"]:
    """One uniform shift of an even comb: particle i is kept ⌊N w_i⌋ or ⌈N w_i⌉ times (Carpenter et al. 1999)."""
    return _ancestors(log_weights, (jnp.arange(num) + jax.random.uniform(key)) / num)


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
