"""`pfbr report`: the page and the figures again, from records alone."""

from pathlib import Path

import typer

from pfbr import figures
from pfbr import report as pages
from pfbr.comparison_figure import comparison_figure
from pfbr.records import MEASUREMENTS


def report(directory: Path = typer.Argument(metavar="DIR", help="Where `demo` or `compare` left its records.")) -> None:
    """Draw the page of a demonstration, or the figure of a comparison, again, without running anything.

    Example: `pfbr report pfbr-demo`
    """
    if (directory / MEASUREMENTS).exists():
        typer.echo(str(comparison_figure(directory)))
        return
    page = pages.demo_page(directory)
    figures.demo_figure(directory)
    typer.echo(str(page))
