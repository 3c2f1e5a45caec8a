"""An operator as it is written on the command line: a file, or the name of one that is always there."""

import pfbr
from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.inference.pretrained import COMMANDS

HELP = (
    "A file made by `pfbr train`, or a name: `gaussian` and `solving` need no training (`solving`: posteriors of any "
    "shape in two or three dimensions), `plane` is for models at rest with dim 2, `mixture` for that model."
)


def named_operator(text: str) -> Method:
    """The operator called `text`; a file of that name would have to be written with a path (`./plane`)."""
    if text == "gaussian":
        return pfbr.gaussian_operator()
    if text == "solving":
        return pfbr.collocation_operator()
    return pfbr.shipped(text) if text in COMMANDS else pfbr.load(text)


def judged(operator: Method, *, repair: str, **settings) -> Method:
    """The operator with its steps judged and repaired; the solving one weighs its own particles, and only does that."""
    if isinstance(operator, pfbr.Operator):
        return pfbr.Corrected(operator, repair=repair, **settings)
    if repair != "never" or any(settings.values()):
        raise InputError("the `solving` operator judges and renews its own particles: leave the other options out.")
    return operator
