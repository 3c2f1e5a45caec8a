"""`pfbr report`: the page and the figure again, from records alone."""

from pathlib import Path

import typer

from pfbr import figures
from pfbr import report as pages


def report(
    directory: Path = typer.Argument(metavar="DIR", help="Where a run left its records, e.g. pfbr-demo."),
) -> None:
    """Draw the page of a run again, without running anything.

    Example: `pfbr report pfbr-demo`
    """
    page = pages.demo_page(directory)
    figures.demo_figure(directory)
    typer.echo(str(page))
