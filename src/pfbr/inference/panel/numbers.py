"""A stream's number from its id alone, so that its random numbers do not depend on who was named before it."""

import hashlib
from collections.abc import Hashable
from typing import Any

import numpy as np


def number_of(stream: Hashable) -> int:
    """Below 2³¹, the same on every machine; two ids that share one share random numbers, and nothing else."""
    return int.from_bytes(hashlib.sha256(repr(_plain(stream)).encode()).digest()[:4], "big") >> 1


def _plain(stream: Any) -> Any:
    """An id without NumPy's types: what Spark calls 7 is the 7 of a list."""
    if isinstance(stream, tuple):
        return tuple(_plain(one) for one in stream)
    return stream.item() if isinstance(stream, np.generic) else stream
