"""The command line: one file a command, assembled here; an error is one red line and exit status 2."""

from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import pfbr
from pfbr.cli.bench import bench
from pfbr.cli.calibrate import calibrate
from pfbr.cli.compare import compare
from pfbr.cli.data import data
from pfbr.cli.demo import demo
from pfbr.cli.infer import infer
from pfbr.cli.report import report
from pfbr.cli.reproduce import reproduce
from pfbr.cli.show import show
from pfbr.cli.train import train
from pfbr.errors import PfbrError


class _OneLineErrors(TyperGroup):
    """Our own errors already say what to do: show the message, not the way it took."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PfbrError as error:
            Console(stderr=True, soft_wrap=True, highlight=False).print(Text(f"error: {error}", style="bold red"))
            raise typer.Exit(2) from error


app = typer.Typer(
    name="pfbr",
    cls=_OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pfbr {pfbr.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """A learned Bayes' rule: particles and one observation in, updated particles out.

    Start with `pfbr demo`. Then `pfbr train` an operator for a model of yours, and `pfbr infer` with it.
    """


for command in (demo, train, infer, compare, calibrate, data, reproduce, bench, show, report):
    app.command()(command)
