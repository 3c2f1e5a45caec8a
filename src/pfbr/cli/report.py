"""`pfbr report`: the page and the figures again, from records alone."""

from pathlib import Path

import typer


def report(
    directory: Path = typer.Argument(
        metavar="DIR", help="Where `demo`, `compare`, `calibrate` or `reproduce` left its records."
    ),
) -> None:
    """Draw a page (of a demonstration, a calibration, an experiment) or a comparison's figure again; nothing is run.

    Example: `pfbr report pfbr-demo`
    """
    typer.echo(str(_drawn(directory)))


def _drawn(directory: Path) -> Path:
    """The page or the figure of whatever left its records there."""
    from pfbr.io.records import MEASUREMENTS, SETTINGS

    if (directory / "calibration.json").exists():
        from pfbr.reporting.calibration_page import calibration_page

        return calibration_page(directory)
    if (directory / MEASUREMENTS).exists() and '"experiment"' not in (directory / SETTINGS).read_text(encoding="utf-8"):
        from pfbr.reporting.comparison_figure import comparison_figure

        return comparison_figure(directory)
    if not (directory / "demo.json").exists():
        from pfbr.paper import registry

        if registry.is_run(directory):
            return registry.draw(directory)
    from pfbr.reporting.demo_figure import demo_figure
    from pfbr.reporting.demo_page import demo_page

    page = demo_page(directory)
    demo_figure(directory)
    return page
