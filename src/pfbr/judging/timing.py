"""Seconds of a call, and a line of the table that compares several."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np


class Timing(NamedTuple):
    """A line of the table; lines of one group are compared with the first of them."""

    group: str
    name: str
    seconds: float
    note: str = ""


def seconds_of(run: Callable[[], object], *, repeats: int = 50) -> float:
    """Median wall time of a call after compilation."""
    jax.block_until_ready(run())
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))
