"""`pfbr calibrate`: is an operator's posterior right, and up to which stage?"""

import dataclasses
from pathlib import Path

import jax
import typer
from rich.console import Console

from pfbr.calibration import CalibrationSettings
from pfbr.calibration import calibrate as run
from pfbr.calibration_page import calibration_page
from pfbr.cli import spec
from pfbr.cli.operators import HELP, judged, named_operator


def calibrate(
    operator: str = typer.Argument(metavar="OPERATOR", help=HELP),
    model: str = typer.Argument(metavar="SPEC", help=spec.HELP),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Where the records and the page go."),
    streams: int = typer.Option(CalibrationSettings.streams, "--streams", min=20, help="How many to simulate."),
    length: int = typer.Option(CalibrationSettings.length, "--length", min=1, help="Observations of each stream."),
    particles: int = typer.Option(256, "--particles", min=2, help="How many particles carry the posterior."),
    repair: str = typer.Option("off", "--repair", help="off: the operator as it is; auto or always: corrected."),
    seed: int = typer.Option(0, "--seed", help="Same seed, same answer."),
) -> None:
    """Rank simulated truths among the particles at every stage, and say in a sentence whether to trust the operator.

    Example: `pfbr calibrate gaussian linear-dynamics:dim=2,seed=0 --out calibration`
    """
    console = Console()
    method = named_operator(operator)
    chosen = method if repair == "off" else judged(method, repair=repair)
    problem = spec.resolve(model)
    settings = CalibrationSettings(streams=streams, length=length, num_particles=particles)
    with console.status(f"following {streams} streams of {length} observations"):
        record = run(jax.random.key(seed), chosen, problem, settings=settings)
    described = record.settings | {"seed": seed, "operator": operator, "spec": model, "repair": repair}
    dataclasses.replace(record, settings=described).save(out)
    page = calibration_page(out)
    console.print(record.verdict, style="green" if record.trusted else "bold red", highlight=False)
    console.print(f"Open the page: [bold]{page.resolve()}[/bold]", soft_wrap=True, highlight=False)
