"""The sixes and eights of MNIST that come with the package (source and licence: mnist68.txt)."""

import functools
from importlib import resources
from typing import NamedTuple

import numpy as np

from pfbr.errors import InputError

SIDE = 28
SPLITS = ("train", "test")


class Digits(NamedTuple):
    """n images (n, 28, 28) of 8 bits, and labels (n,): 1 for an eight, 0 for a six."""

    images: np.ndarray
    labels: np.ndarray


@functools.cache
def load_digits(split: str) -> Digits:
    """The official "train" (11,769 images) or "test" part (1,932 images); nobody may write into the arrays."""
    if split not in SPLITS:
        raise InputError(f"`split` must be one of {', '.join(SPLITS)}; got {split!r}.")
    with resources.as_file(resources.files("pfbr.paper.digits") / "mnist68.npz") as path, np.load(path) as stored:
        digits = Digits(stored[f"x_{split}"], (stored[f"y_{split}"] == 8).astype(np.float32))
    for array in digits:
        array.setflags(write=False)
    return digits
