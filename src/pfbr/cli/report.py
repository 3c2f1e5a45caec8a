"""`pfbr report`: the page and the figures again, from records alone."""

from pathlib import Path

import typer

from pfbr import figures
from pfbr import report as pages
from pfbr.calibration import RECORD as CALIBRATION
from pfbr.calibration_page import calibration_page
from pfbr.comparison_figure import comparison_figure
from pfbr.experiments import registry
from pfbr.records import MEASUREMENTS


def report(
    directory: Path = typer.Argument(
        metavar="DIR", help="Where `demo`, `compare`, `calibrate` or `reproduce` left its records."
    ),
) -> None:
    """Draw a page (of a demonstration, a calibration, an experiment) or a comparison's figure again; nothing is run.

    Example: `pfbr report pfbr-demo`
    """
    if registry.is_run(directory):
        typer.echo(str(registry.draw(directory)))
        return
    if (directory / f"{CALIBRATION}.json").exists():
        typer.echo(str(calibration_page(directory)))
        return
    if (directory / MEASUREMENTS).exists():
        typer.echo(str(comparison_figure(directory)))
        return
    page = pages.demo_page(directory)
    figures.demo_figure(directory)
    typer.echo(str(page))
