"""The commands in one program; an error is one red line and exit status 2.

Nothing heavy is imported here or at the top of a command's file, so that `--help` answers at once.
"""

from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from pfbr.cli.bench import bench
from pfbr.cli.calibrate import calibrate
from pfbr.cli.check import check
from pfbr.cli.compare import compare
from pfbr.cli.data import data
from pfbr.cli.demo import demo
from pfbr.cli.forecast import forecast
from pfbr.cli.infer import infer
from pfbr.cli.report import report
from pfbr.cli.reproduce import reproduce
from pfbr.cli.show import show
from pfbr.cli.start import missing_extra
from pfbr.cli.train import train
from pfbr.errors import PfbrError
from pfbr.version import VERSION

UsageError: Any = typer.BadParameter.__bases__[0]  # typer brings its own click in some versions, not in others


class _OneLineErrors(TyperGroup):
    """Our own errors already say what to do: show the message, not the way it took."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PfbrError as error:
            _refuse(str(error), error)
        except UsageError as error:
            path = error.ctx.command_path if error.ctx is not None else "pfbr"
            _refuse(f"{error.format_message()} `{path} --help` shows how.", error)
        except ModuleNotFoundError as error:
            said = missing_extra(error)
            if said is None:
                raise
            _refuse(said, error)


def _refuse(message: str, error: Exception) -> None:
    line = " ".join(message.split("\n"))
    Console(stderr=True, soft_wrap=True, highlight=False).print(Text(f"error: {line}", style="bold red"))
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
        typer.echo(f"pfbr {VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Online Bayesian inference: particles and one observation in, updated particles out.

    Start with `pfbr demo`. Then `pfbr check` a model of yours, and `pfbr infer` with it.
    """


for command in (demo, check, infer, forecast, train, compare, calibrate, data, reproduce, bench, show, report):
    app.command()(command)
