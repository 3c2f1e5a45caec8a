"""`pfbr show`: how the operator in a file was made."""

import json
from pathlib import Path

import typer


def show(file: Path = typer.Argument(metavar="FILE", help="An operator made by `pfbr train`.")) -> None:
    """Print the header of an operator: model, settings, seed, version, history, validation score.

    Example: `pfbr show mixture.pfbr`
    """
    from pfbr.inference.operator_file import read_header

    typer.echo(json.dumps(read_header(file), indent=2))
