"""`pfbr calibrate`: is a method's posterior right, and up to which stage?"""

from pathlib import Path

import typer
from rich.console import Console

from pfbr.cli import words
from pfbr.errors import FileError

STREAMS, LENGTH = 200, 25  # as `CalibrationSettings` has them


def calibrate(
    model: str = typer.Argument(metavar="SPEC", help=words.SPEC),
    method: str = typer.Option("auto", "--method", metavar="M", help=words.METHOD),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Where the records and the page go."),
    streams: int = typer.Option(STREAMS, "--streams", help="How many to simulate, at least 20."),
    length: int = typer.Option(LENGTH, "--length", min=1, help="Observations of each stream."),
    particles: int = typer.Option(256, "--particles", min=2, help=words.PARTICLES),
    seed: int = typer.Option(0, "--seed", min=0, help=words.SEED),
) -> None:
    """Rank simulated truths among the particles at every stage, and say in a sentence whether to trust the method.

    Ctrl-C gives a verdict on the streams that are done.

    Example: `pfbr calibrate linear-dynamics:dim=2,seed=0 --method gaussian --out calibration`
    """
    import dataclasses
    import shlex
    import time

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from pfbr.cli import spec
    from pfbr.io.locks import held_directory
    from pfbr.judging.calibration.calibrate import CalibrationSettings
    from pfbr.judging.calibration.calibrate import calibrate as run
    from pfbr.reporting.calibration_page import calibration_page

    if out.exists() and not out.is_dir():
        raise FileError(f"{str(out)!r} is a file; --out needs a directory. Choose another path.")
    console = Console()
    problem = spec.resolve(model)
    settings = CalibrationSettings(streams=streams, length=length, num_particles=particles)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("streams"))
    started = time.monotonic()
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
    with held_directory(out), bar as bars:
        shown = bars.add_task("compiling", total=streams)

        def progress(done: int) -> None:
            bars.update(shown, completed=done, description="following")

        record = run(problem, method=method, key=seed, settings=settings, progress=progress)
        command = ["pfbr", "calibrate", model, "--method", method, "--streams", streams, "--length", length]
        command += ["--particles", particles, "--seed", seed, "--out", "DIR"]
        facts = {"spec": model, "method": method, "seed": seed}
        made = {"command": shlex.join(map(str, command)), "seconds": round(time.monotonic() - started, 1)}
        dataclasses.replace(record, settings=record.settings | facts | made).save(out)
        page = calibration_page(out)
    if record.settings["interrupted"]:
        console.print(f"Stopped after {record.settings['streams']} of {streams} streams: the verdict is on those.")
    console.print(record.verdict, style="green" if record.trusted else "bold red", highlight=False)
    console.print(record.settings["advice"], highlight=False)
    console.print(f"Open the page: [bold]{page.resolve()}[/bold]", soft_wrap=True, highlight=False)
