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
    from pfbr.errors import FileError, PfbrError

    if directory.exists() and not directory.is_dir():
        raise FileError(f"{str(directory)!r} is a file; the records of a run are in a directory.")
    try:
        page = _drawn(directory)
    except PfbrError:
        raise
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # whatever a page asks of its records: they are read whole, but hold other things than it expects
        said = f"{type(error).__name__}: {error}"
        raise FileError(
            f"the records in {str(directory)!r} are not those of a run ({said}). Make them again."
        ) from error
    typer.echo(str(page))


def _drawn(directory: Path) -> Path:
    """The page or the figure of whatever left its records there."""
    from pfbr.io.json_text import read_table
    from pfbr.io.records import MEASUREMENTS, SETTINGS

    if (directory / "calibration.json").exists():
        from pfbr.reporting.calibration_page import calibration_page

        return calibration_page(directory)
    if (directory / MEASUREMENTS).exists() and "experiment" not in read_table(directory / SETTINGS):
        from pfbr.reporting.comparison_figure import comparison_figure

        return comparison_figure(directory)
    if not (directory / "two-modes.json").exists():
        from pfbr.paper import registry

        if registry.is_run(directory):
            return registry.draw(directory)
    from pfbr.reporting.demo_figure import demo_figure
    from pfbr.reporting.demo_page import demo_page

    page = demo_page(directory)
    demo_figure(directory)
    return page
