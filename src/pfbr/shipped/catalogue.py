"""The operators that come with the package, each with the command that trained it."""

from importlib import resources

from pfbr.checkpoint import load
from pfbr.errors import InputError
from pfbr.operator import Operator

COMMANDS = {
    "mixture": "python benchmarks/scores.py gaussian-mixture --minutes 4 --save src/pfbr/shipped/mixture.pfbr",
    "plane": "python benchmarks/train_plane.py --minutes 14 --out src/pfbr/shipped/plane.pfbr",
}


def shipped(name: str) -> Operator:
    """An operator from the package: "mixture" for `GaussianMixture`, "plane" for any model at rest with dim 2."""
    if name not in COMMANDS:
        raise InputError(f"there is no shipped operator {name!r}; there are {', '.join(COMMANDS)}.")
    with resources.as_file(resources.files("pfbr.shipped") / f"{name}.pfbr") as path:
        return load(path)
