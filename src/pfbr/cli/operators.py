"""An operator as it is written on the command line: a file, or the name of one that is always there."""

import pfbr
from pfbr.shipped import COMMANDS

HELP = "A file made by `pfbr train`, or `gaussian` (needs no training), `plane` (models at rest with dim 2), `mixture`."


def named_operator(text: str) -> pfbr.Operator:
    """The operator called `text`; a file of that name would have to be written with a path (`./plane`)."""
    if text == "gaussian":
        return pfbr.gaussian_operator()
    return pfbr.shipped(text) if text in COMMANDS else pfbr.load(text)
