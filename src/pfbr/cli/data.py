"""`pfbr data`: prepare a large data set on disk, in pieces, resumable."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from pfbr.errors import InputError

if TYPE_CHECKING:
    import numpy as np

NAMES = ("mnist8m",)
MOST_WORKERS = 1024
VARIANTS = 135  # of each image, as `StreamSettings` has it
SHEET_ROWS, SHEET_COLUMNS = 12, 20


def data(
    name: str = typer.Argument(metavar="NAME", help=f"What to prepare: {', '.join(NAMES)}."),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Where it goes; a begun one is finished."),
    variants: int = typer.Option(VARIANTS, "--variants", min=1, help="Variants of each image, itself among them."),
    workers: int = typer.Option(0, "--workers", min=0, help="Threads; 0 takes one for each core."),
) -> None:
    """1.59 million deformed sixes and eights, reduced to 50 standardised features each; and a sheet to look at.

    Example: `pfbr data mnist8m --out mnist8m`
    """
    import resource
    import time

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from pfbr.io.locks import held_directory
    from pfbr.paper.digits import StreamSettings, prepare

    if workers > MOST_WORKERS:
        raise InputError(f"--workers must be at most {MOST_WORKERS}; got {workers}.")
    if name not in NAMES:
        raise InputError(f"there is no data set {name!r}; there is {', '.join(NAMES)}.")
    console = Console()
    started, last = time.monotonic(), 0.0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("images"))
    bar = Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)
    with held_directory(out), bar as bars:
        shown = {what: bars.add_task(what, total=None) for what in ("principal components", "features")}

        def report(what: str, done: int, total: int) -> None:
            nonlocal last
            bars.update(shown[what], completed=done, total=total)
            if not console.is_terminal and (time.monotonic() - last > 10 or done == total):
                last = time.monotonic()
                console.print(f"{what}: {done:,} of {total:,} images", highlight=False)

        stream = prepare(out, settings=StreamSettings(variants=variants), workers=workers or None, progress=report)
    seconds = time.monotonic() - started
    _write_image(out / "sheet.png", contact_sheet())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    console.print(
        f"{stream.num_images:,} images in {seconds:.0f} s, {stream.num_images / seconds:,.0f} a second; "
        f"{100 * stream.reduction.share:.1f} % of the variance is kept; at most {peak:.2f} GB of memory.",
        highlight=False,
    )
    console.print(f"Look at them: [bold]{(out / 'sheet.png').resolve()}[/bold]", soft_wrap=True, highlight=False)


def contact_sheet() -> "np.ndarray":
    """The first images of the training set, one a row, the original first and then its variants; twice their size."""
    import numpy as np

    from pfbr.paper.digits import load_digits
    from pfbr.paper.digits.deformation import deform

    images, rows = load_digits("train").images[:SHEET_ROWS], np.arange(SHEET_ROWS)
    sheet = np.concatenate([deform(images, rows, v) for v in range(SHEET_COLUMNS)], axis=2)
    return sheet.reshape(-1, sheet.shape[2]).repeat(2, axis=0).repeat(2, axis=1)


def _write_image(path: Path, pixels: "np.ndarray") -> None:
    import io

    from matplotlib import image

    from pfbr.io.files import write_bytes

    drawn = io.BytesIO()
    image.imsave(drawn, pixels, cmap="gray", format="png")
    write_bytes(path, drawn.getvalue())
