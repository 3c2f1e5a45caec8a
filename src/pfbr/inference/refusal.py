"""Steps that left no posterior, refused with what is known about why."""

from collections.abc import Callable
from enum import IntEnum

import numpy as np
from jax import Array
from jax import numpy as jnp

from pfbr.errors import LikelihoodError
from pfbr.inference.info import Info
from pfbr.particles.particles import Particles


class Fault(IntEnum):
    """Why a step left no posterior."""

    NONE = 0
    UNDEFINED = 1  # the likelihood is NaN
    IMPOSSIBLE = 2  # it rules every particle out
    BROKEN = 3  # particles are no numbers


def faults(particles: Particles, info: Info) -> np.ndarray:
    """The fault of each step; arrays may lead with streams and stages."""
    finite = np.all(np.isfinite(np.asarray(particles.points)), axis=(-2, -1))
    found = np.where(finite, int(Fault.NONE), int(Fault.BROKEN))
    if info.log_predictive is not None:  # what every method that weighs can tell
        found = np.where(np.isneginf(np.asarray(info.log_predictive)), int(Fault.IMPOSSIBLE), found)
    if info.possible is not None:
        found = np.where(np.asarray(info.possible) <= 0, int(Fault.IMPOSSIBLE), found)
    if info.undefined is not None:
        found = np.where(np.asarray(info.undefined) > 0, int(Fault.UNDEFINED), found)
    return found


def step_fault(particles: Particles, info: Info) -> Array:
    """The same of one step, inside what is compiled."""
    found = jnp.where(jnp.all(jnp.isfinite(particles.points)), int(Fault.NONE), int(Fault.BROKEN))
    if info.log_predictive is not None:
        found = jnp.where(jnp.isneginf(info.log_predictive), int(Fault.IMPOSSIBLE), found)
    if info.possible is not None:
        found = jnp.where(info.possible <= 0, int(Fault.IMPOSSIBLE), found)
    if info.undefined is not None:
        found = jnp.where(info.undefined > 0, int(Fault.UNDEFINED), found)
    return found


def fault_in_words(fault: int, where: str, undefined: float) -> str:
    """What went wrong at `where`; `undefined` is the share of the particles whose likelihood is NaN."""
    if fault == Fault.UNDEFINED:
        return (
            f"{where} has a log likelihood that is NaN at {100 * undefined:.1f} % of the particles. An observation "
            "that is impossible at some x has −inf there; NaN is a fault of the model: look for 0/0, log of a negative "
            "number, or inf − inf in `log_likelihood`."
        )
    if fault == Fault.IMPOSSIBLE:
        return (
            f"{where} has a log likelihood of −inf at every particle: the model says that it cannot happen where the "
            "posterior is. Check its value and units, or give the likelihood heavier tails."
        )
    return (
        f"{where} left particles that are not finite: the method broke down there, not your model. Use "
        'method="auto", or more particles; the posterior before it is kept.'
    )


def refuse_without_posterior(particles: Particles, info: Info, where: Callable[[np.ndarray], str]) -> None:
    """Raise where the likelihood is NaN, where it rules every particle out, or where particles are no numbers.

    Arrays may lead with streams and stages; `where` turns the first index that is wrong into words.
    """
    found = np.atleast_1d(faults(particles, info))
    for fault in (Fault.UNDEFINED, Fault.IMPOSSIBLE, Fault.BROKEN):
        if (found == fault).any():
            index = np.argwhere(found == fault)[0]
            share = 0.0 if info.undefined is None else float(np.atleast_1d(np.asarray(info.undefined))[tuple(index)])
            raise LikelihoodError(fault_in_words(fault, where(index), share))


def in_words(index: np.ndarray) -> str:
    """Which observation, of which stream."""
    *stream, stage = (int(i) for i in index)
    return f"observation {stage + 1}" + (f" of stream {stream[0] + 1}" if stream else "")
