"""The operators that come with the package, each with the command that trained it."""

from importlib import resources

from pfbr.errors import InputError
from pfbr.inference.operator import Operator
from pfbr.inference.operator_file import load

# Trained by an experiment, all with seed 0; --retrain makes them again as DIR/operators/NAME.pfbr.
_BY_EXPERIMENT = {
    "gaussian": ("gaussian-2-paper", "gaussian-3-paper", "gaussian-5-paper", "gaussian-8-paper"),
    "mixture": ("mixture-paper",),
    "lds": ("lds-2-paper",),
    "table1": ("lds-10-paper",),
}
# Proposals of a rival, which are no operators: only the experiment reads them (experiments/trained.py).
PROPOSALS = dict.fromkeys(("lds-10-aesmc-mlp", "lds-10-aesmc-gru"), "pfbr reproduce table1 --retrain --out DIR")
COMMANDS = {
    "mixture": "python benchmarks/scores.py gaussian-mixture --minutes 22 --save first.pfbr; "
    "python benchmarks/scores.py gaussian-mixture --start first.pfbr --seed 1 --learning-rate 1e-3 --minutes 28 "
    "--save src/pfbr/shipped/mixture.pfbr",
    "plane": "python benchmarks/train_plane.py --minutes 14 --out src/pfbr/shipped/plane.pfbr",
    "digits": "python benchmarks/train_digits.py --data mnist8m --out src/pfbr/shipped/digits.pfbr",
    "digits-zeroed": "python benchmarks/train_digits.py --data mnist8m --zeroed --steps 200 --out digits-zeroed.pfbr",
    **{
        name: f"pfbr reproduce {experiment} --retrain --out DIR"
        for experiment, names in _BY_EXPERIMENT.items()
        for name in names
    },
}


def shipped(name: str) -> Operator:
    """An operator from the package: "mixture" for `GaussianMixture`, "plane" for any model at rest with dim 2.

    Those that end in "-paper" have the paper's architecture and serve its experiments.
    """
    if name not in COMMANDS:
        raise InputError(f"there is no shipped operator {name!r}; there are {', '.join(COMMANDS)}.")
    with resources.as_file(resources.files("pfbr.shipped") / f"{name}.pfbr") as path:
        return load(path)
