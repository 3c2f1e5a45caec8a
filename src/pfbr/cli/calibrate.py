"""`pfbr calibrate`: is an operator's posterior right, and up to which stage?"""

import dataclasses
import shlex
import time
from pathlib import Path

import jax
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pfbr.cli import spec
from pfbr.cli.operators import HELP, judged, named_operator
from pfbr.errors import FileError, InputError
from pfbr.judging.calibration.calibrate import CalibrationSettings
from pfbr.judging.calibration.calibrate import calibrate as run
from pfbr.reporting.calibration_page import calibration_page

REPAIRS = ("off", "auto", "always")


def calibrate(
    operator: str = typer.Argument(metavar="OPERATOR", help=HELP),
    model: str = typer.Argument(metavar="SPEC", help=spec.HELP),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Where the records and the page go."),
    streams: int = typer.Option(CalibrationSettings.streams, "--streams", help="How many to simulate, at least 20."),
    length: int = typer.Option(CalibrationSettings.length, "--length", min=1, help="Observations of each stream."),
    particles: int = typer.Option(256, "--particles", min=2, help="How many particles carry the posterior."),
    repair: str = typer.Option("off", "--repair", help="off: the operator as it is; auto or always: corrected."),
    seed: int = typer.Option(0, "--seed", help="Same seed, same answer."),
) -> None:
    """Rank simulated truths among the particles at every stage, and say in a sentence whether to trust the operator.

    Ctrl-C judges the streams that are done.

    Example: `pfbr calibrate gaussian linear-dynamics:dim=2,seed=0 --out calibration`
    """
    if repair not in REPAIRS:
        raise InputError(f"--repair is one of {', '.join(REPAIRS)}; got {repair!r}.")
    if out.exists() and not out.is_dir():
        raise FileError(f"{str(out)!r} is a file; --out needs a directory. Choose another path.")
    console = Console()
    method = named_operator(operator)
    chosen = method if repair == "off" else judged(method, repair=repair)
    problem = spec.resolve(model)
    settings = CalibrationSettings(streams=streams, length=length, num_particles=particles)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("streams"))
    started = time.monotonic()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        shown = bars.add_task("compiling", total=streams)

        def progress(done: int) -> None:
            bars.update(shown, completed=done, description="following")

        record = run(jax.random.key(seed), chosen, problem, settings=settings, progress=progress)
    words = ["pfbr", "calibrate", operator, model, "--streams", streams, "--length", length]
    words += ["--particles", particles, "--repair", repair, "--seed", seed, "--out", "DIR"]
    described = {"operator": operator, "spec": model, "repair": repair, "seed": seed}
    made = {"command": shlex.join(map(str, words)), "seconds": round(time.monotonic() - started, 1)}
    dataclasses.replace(record, settings=record.settings | described | made).save(out)
    page = calibration_page(out)
    if record.settings["interrupted"]:
        console.print(f"Stopped after {record.settings['streams']} of {streams} streams; judged by those.")
    console.print(record.verdict, style="green" if record.trusted else "bold red", highlight=False)
    console.print(record.settings["advice"], highlight=False)
    console.print(f"Open the page: [bold]{page.resolve()}[/bold]", soft_wrap=True, highlight=False)
