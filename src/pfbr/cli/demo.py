"""`pfbr demo`: the main job on an embedded example, in a table and on one page."""

from pathlib import Path

import jax
import typer
from rich.console import Console
from rich.table import Table

import pfbr
from pfbr.cli.train import train_operator
from pfbr.inference.method import Method
from pfbr.judging import demo as demonstration
from pfbr.models import GaussianMixture
from pfbr.reporting import demo_figure as figures
from pfbr.reporting import demo_page as pages


def demo(
    out: Path = typer.Option(Path("pfbr-demo"), "--out", metavar="DIR", help="Where the records and the page go."),
    train: bool = typer.Option(False, "--train", help="Train the operator first instead of using the shipped one."),
    minutes: float = typer.Option(5.0, "--minutes", min=0.01, help="How long to train with --train."),
) -> None:
    """An unseen stream, our posterior beside the truth and beside SMC, one self-contained page.

    Example: `pfbr demo`, then open pfbr-demo/index.html
    """
    console = Console()
    operator, provenance = _operator(train, minutes, out)
    with console.status("starting") as status:
        record = demonstration.run(operator, provenance=provenance, say=lambda message: status.update(message))
        status.update("drawing the page")
        record.save(out)
        page = pages.demo_page(out)
        figures.demo_figure(out)
    console.print(_scores(record))
    console.print(_facts(record))
    console.print(f"\nOpen the page: [bold]{page.resolve()}[/bold]", soft_wrap=True, highlight=False)


def _operator(train: bool, minutes: float, out: Path) -> tuple[Method, str]:
    if train:
        out.mkdir(parents=True, exist_ok=True)
        file = out / "operator.pfbr"
        trained = train_operator(jax.random.key(0), GaussianMixture(), file, minutes=minutes)
        return trained, f"trained on the mixture for {minutes:g} minutes"
    return pfbr.shipped("mixture"), "shipped with pfbr, trained on the mixture"


def _scores(record: demonstration.DemoRecord) -> Table:
    settings, arrays = record.settings, record.arrays
    table = Table(title="Cross entropy to the true posterior (nats, lower is better)", title_justify="left")
    stages = pages.table_stages(settings["num_observations"])
    table.add_column("after observation")
    for stage in stages:
        table.add_column(str(stage), justify="right")
    names = {"exact": f"{settings['num_particles']} exact draws", "pfbr": "[bold]pfbr[/bold]", "smc": "one-pass SMC"}
    for name, title in {**names, "never": "never learning"}.items():
        table.add_row(title, *(f"{arrays[f'{name}_score'][stage]:.2f}" for stage in stages))
    return table


def _facts(record: demonstration.DemoRecord) -> Table:
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
