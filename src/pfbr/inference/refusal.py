"""Steps that left no posterior, refused with what is known about why."""

from collections.abc import Callable

import numpy as np

from pfbr.errors import LikelihoodError
from pfbr.inference.info import Info
from pfbr.particles.particles import Particles


def refuse_without_posterior(particles: Particles, info: Info, where: Callable[[np.ndarray], str]) -> None:
    """Raise where the likelihood is NaN, where it rules every particle out, or where particles are no numbers.

    Arrays may lead with streams and stages; `where` turns the first index that is wrong into words.
    """
    if info.undefined is not None:
        undefined = np.asarray(info.undefined)
        if np.any(undefined > 0):
            index = np.argwhere(np.atleast_1d(undefined > 0))[0]
            share = float(np.atleast_1d(undefined)[tuple(index)])
            raise LikelihoodError(
                f"{where(index)} has a log likelihood that is NaN at {100 * share:.1f} % of the particles. An "
                "observation that is impossible at some x has −inf there; NaN is a fault of the model: look for 0/0, "
                "log of a negative number, or inf − inf in `log_likelihood`."
            )
    if info.possible is not None:
        impossible = np.atleast_1d(np.asarray(info.possible) <= 0)
        if impossible.any():
            raise LikelihoodError(
                f"{where(np.argwhere(impossible)[0])} has a log likelihood of −inf at every particle: the model says "
                "that it cannot happen where the posterior is. Check its value and units, or give the likelihood "
                "heavier tails."
            )
    finite = np.atleast_1d(np.all(np.isfinite(np.asarray(particles.points)), axis=(-2, -1)))
    if not finite.all():
        raise LikelihoodError(
            f"{where(np.argwhere(~finite)[0])} left particles that are not finite: the method broke down there, not "
            'your model. Use method="auto", or more particles; the posterior before it is kept.'
        )


def in_words(index: np.ndarray) -> str:
    """Which observation, of which stream."""
    *stream, stage = (int(i) for i in index)
    return f"observation {stage + 1}" + (f" of stream {stream[0] + 1}" if stream else "")
