"""The operators that come with the package, each with the command that trained it; a room below can add its own."""

from importlib import resources
from pathlib import Path

from pfbr.checks import shortened
from pfbr.errors import InputError
from pfbr.inference.operator import Operator
from pfbr.inference.operator_file import load

COMMANDS = {
    "mixture": "python benchmarks/scores.py gaussian-mixture --minutes 22 --save first.pfbr; "
    "python benchmarks/scores.py gaussian-mixture --start first.pfbr --seed 1 --learning-rate 1e-3 --minutes 28 "
    "--save mixture.pfbr",
    "static-2d": "python benchmarks/train_static_2d.py --minutes 14 --out static-2d.pfbr",
}
NAMES = tuple(COMMANDS)


def pretrained(name: str) -> Operator:
    """An operator from the package: "mixture" for `GaussianMixture`, "static-2d" for any static model with dim 2."""
    if not isinstance(name, str) or name not in COMMANDS:
        raise InputError(f"there is no pretrained operator {shortened(name)}; there are {', '.join(COMMANDS)}.")
    return load_shipped("pfbr.inference.pretrained", name)


def load_shipped(package: str, name: str) -> Operator:
    """The operator in NAME.pfbr beside the modules of a package."""
    with resources.as_file(resources.files(package) / f"{name}.pfbr") as path:
        return load(Path(path))
