"""`pfbr demo`: the main job on an embedded example, in a table and on one page."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rich.table import Table

    from pfbr.inference.method import Method
    from pfbr.judging.demo.record import DemoRecord


def demo(
    out: Path = typer.Option(Path("pfbr-demo"), "--out", metavar="DIR", help="Where the records and the page go."),
    train: bool = typer.Option(False, "--train", help="Train an operator for the first stream and show that one."),
    minutes: float = typer.Option(5.0, "--minutes", min=0.01, help="How long to train with --train."),
) -> None:
    """Three streams as they come, beside the truth and beside rivals, on one self-contained page: a posterior with two
    modes, a newcomer's regression, and a ship among beacons with every rival given the same time.

    Example: `pfbr demo`, then open pfbr-demo/index.html
    """
    from pfbr.io.locks import held_directory
    from pfbr.judging.demo import regression, tracking, two_modes
    from pfbr.reporting.demo_figure import demo_figure
    from pfbr.reporting.demo_page import demo_page
    from pfbr.reporting.demo_scenes import regression_scene, tracking_scene

    console = Console()
    with held_directory(out), console.status("starting") as status:
        method, provenance = _method(train, minutes, out)
        say = lambda message: status.update(message)
        record = two_modes.run(method, provenance=provenance, say=say)
        line, ship = regression.run(say=say), tracking.run(say=say)
        status.update("drawing the page")
        for each in (record, line, ship):
            each.save(out)
        page = demo_page(out)
        demo_figure(out)
    console.print(_scores(record))
    console.print(_facts(record))
    for scene in (regression_scene(line), tracking_scene(ship)):
        console.print(f"\n[italic]{scene.title}[/italic]")
        for finding in scene.findings:
            console.print(f"  {finding.text}", highlight=False)
    console.print(f"\nOpen the page: [bold]{page.resolve()}[/bold]", soft_wrap=True, highlight=False)


def _method(train: bool, minutes: float, out: Path) -> "tuple[str | Method, str]":
    if not train:
        return "auto", "the default method, nothing trained"
    from pfbr.cli.train import train_operator
    from pfbr.io.files import make_directory
    from pfbr.models import GaussianMixture

    trained = train_operator(GaussianMixture(), make_directory(out) / "operator.pfbr", minutes=minutes)
    return trained, f"trained on the mixture for {minutes:g} minutes"


def _scores(record: "DemoRecord") -> "Table":
    from rich.table import Table

    from pfbr.reporting.demo_page import table_stages

    settings, arrays = record.settings, record.arrays
    table = Table(title="Cross entropy to the true posterior (nats, lower is better)", title_justify="left")
    stages = table_stages(settings["num_observations"])
    table.add_column("after observation")
    for stage in stages:
        table.add_column(str(stage), justify="right")
    names = {"exact": f"{settings['num_particles']} exact draws", "pfbr": "[bold]pfbr[/bold]", "smc": "one-pass SMC"}
    for name, title in {**names, "prior": "prior"}.items():
        table.add_row(title, *(f"{arrays[f'{name}_score'][stage]:.2f}" for stage in stages))
    return table


def _facts(record: "DemoRecord") -> "Table":
    from rich.table import Table

    settings, arrays = record.settings, record.arrays
    u, v = settings["unknown"]
    table = Table(title=f"After {settings['num_observations']} observations", title_justify="left")
    table.add_column("")
    for title in ("truth", "pfbr", "one-pass SMC"):
        table.add_column(title, justify="right")
    below = [float(arrays[f"{name}_mass"][-1]) for name in ("truth", "pfbr", "smc")]
    table.add_row(f"mass of the mode near ({u:g}, {v:g})", *(f"{mass:.2f}" for mass in below))
    table.add_row(f"mass of the mode near ({u + v:g}, {-v:g})", *(f"{1 - mass:.2f}" for mass in below))
    seconds = settings["seconds_per_update"]
    table.add_row("time of one update", "", *(f"{1e3 * seconds[name]:.2f} ms" for name in ("pfbr", "smc")))
    return table
