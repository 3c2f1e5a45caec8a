"""`pfbr report`: the page and the figures again, from records alone."""

from pathlib import Path

import typer

from pfbr.io.records import MEASUREMENTS
from pfbr.judging.calibration.calibrate import RECORD as CALIBRATION
from pfbr.paper import registry
from pfbr.reporting import demo_figure as figures
from pfbr.reporting import demo_page as pages
from pfbr.reporting.calibration_page import calibration_page
from pfbr.reporting.comparison_figure import comparison_figure


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
