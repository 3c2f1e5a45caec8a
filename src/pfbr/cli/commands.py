"""The commands in one program; an error is one red line and exit status 2.

Nothing heavy is imported here or at the top of a command's file, so that `--help` answers at once.
"""

import traceback
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
from pfbr.cli.export import export
from pfbr.cli.forecast import forecast
from pfbr.cli.infer import infer
from pfbr.cli.interrupts import STOPPED, stoppable
from pfbr.cli.report import report
from pfbr.cli.reproduce import reproduce
from pfbr.cli.show import show
from pfbr.cli.start import missing_extra
from pfbr.cli.train import train
from pfbr.errors import PfbrError
from pfbr.version import VERSION

# What typer itself ends a command with.
_OWN_WAYS_OUT: Any = tuple({typer.Exit, typer.Abort})
UsageError: Any = typer.BadParameter.__bases__[0]  # typer brings its own click in some versions, not in others


class _OneLineErrors(TyperGroup):
    """Our own errors already say what to do: show the message, not the way it took."""

    debug = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`--debug` may stand anywhere before `--`."""
        before = args[: args.index("--")] if "--" in args else args
        self.debug = "--debug" in before
        return super().parse_args(ctx, [word for word in before if word != "--debug"] + args[len(before) :])

    def invoke(self, ctx: Any) -> Any:
        try:
            with stoppable():
                return self._invoked(ctx)
        except KeyboardInterrupt:
            _say("stopped.")
            raise typer.Exit(STOPPED) from None
        except BaseException as error:
            if self.debug and not isinstance(error, SystemExit) and isinstance(error.__cause__, Exception):
                traceback.print_exception(error.__cause__)
            raise

    def _invoked(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PfbrError as error:
            _refuse(str(error), error)
        except UsageError as error:
            path = error.ctx.command_path if error.ctx is not None else "pfbr"
            _refuse(f"{error.format_message()} `{path} --help` shows how.", error)
        except ModuleNotFoundError as error:
            _refuse(missing_extra(error) or _unexpected(error), error)
        except MemoryError as error:
            _refuse("there is not enough memory for this: fewer particles, rows or streams take less.", error)
        except BrokenPipeError:
            raise  # nobody reads any more: the program ends without a word
        except OSError as error:
            _refuse(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", error)
        except _OWN_WAYS_OUT:
            raise
        except Exception as error:
            _refuse(_unexpected(error), error)


def _refuse(message: str, error: Exception) -> None:
    _say(f"error: {' '.join(message.split())}", style="bold red")
    raise typer.Exit(2) from error


def _say(line: str, **look: Any) -> None:
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)  # no escape codes from a file
    Console(stderr=True, soft_wrap=True, highlight=False).print(Text(shown, **look))


def _unexpected(error: Exception) -> str:
    said = " ".join(str(error).split())
    if "RESOURCE_EXHAUSTED" in said or "bad_alloc" in said:
        return "there is not enough memory for this: fewer particles, rows or streams take less."
    return f"{type(error).__name__}: {said[:300]} (a fault in pfbr or in your code; --debug shows where)"


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
    debug: bool = typer.Option(False, "--debug", help="Show where an error was raised, before the line that says it."),
) -> None:
    """Online Bayesian inference: particles and one observation in, updated particles out.

    Start with `pfbr demo`. Then `pfbr check` a model of yours, and `pfbr infer` with it.
    """


for command in (demo, check, infer, forecast, train, compare, calibrate, data, reproduce, bench, export, show, report):
    app.command()(command)
