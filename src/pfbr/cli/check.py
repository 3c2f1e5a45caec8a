"""`pfbr check`: is a model ready, or what has to be mended?"""

from typing import TYPE_CHECKING

import typer
from rich.console import Console

from pfbr.cli import words

if TYPE_CHECKING:
    from rich.table import Table

    from pfbr.judging.model_check import Finding

DRAWS = 8192  # as `CheckSettings` has it
MARKS = {"good": "[green]✓[/green]", "note": "[yellow]○[/yellow]", "fault": "[bold red]✗[/bold red]"}


def check(
    model: str = typer.Argument(metavar="SPEC", help=words.SPEC),
    draws: int = typer.Option(
        DRAWS, "--draws", help="How many draws are compared with each density; fewer are quicker and see less."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help=words.SEED),
    quiet: bool = typer.Option(False, "--quiet", help="Show only what is not as it should be."),
) -> None:
    """Look at a model in full, and say "ready" or what to mend.

    Calls every method on draws of the model itself: what it declares, shapes, finite values, draws that differ, draws
    against densities, gradients against finite differences, supports and constraints. ✓ is right, ○ is worth knowing,
    ✗ has to be mended. A right model is refused less than once in two hundred times. The exit status is 0 when the
    model is ready and 1 when it is not.

    Example: `pfbr check my_model.py:model`
    """
    from rich.text import Text

    from pfbr.cli import spec
    from pfbr.judging.model_check import FAULT, GOOD, CheckSettings, check_model, is_ready

    problem = spec.resolve(model)
    console = Console()
    with Console(stderr=True).status("drawing, and comparing"):
        findings = check_model(problem, key=seed, settings=CheckSettings(draws=draws))
    shown = [finding for finding in findings if finding.level != GOOD or not quiet]
    if shown:
        console.print(_table(shown))
    faults = sum(finding.level == FAULT for finding in findings)
    if is_ready(findings):
        console.print(Text(f"{type(problem).__name__} is ready.", style="bold green"))
        return
    what = "one thing" if faults == 1 else f"{faults} things"
    console.print(Text(f"{type(problem).__name__} is not ready: mend {what}.", style="bold red"))
    raise typer.Exit(1)


def _table(findings: "list[Finding]") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "method", "question", "found, and what to do", show_lines=False)
    for finding in findings:
        advice = f"\n[bold]{escape(finding.advice)}[/bold]" if finding.advice else ""
        table.add_row(MARKS[finding.level], finding.method, escape(finding.question), escape(finding.found) + advice)
    return table
