"""`pfbr train`: learn an operator for a model, in view, into one file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import typer
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

import pfbr
from pfbr.cli import spec
from pfbr.cli.output import check_writable
from pfbr.inference.ood import learn_reference_statistics
from pfbr.inference.ood import remember as remember_shift
from pfbr.inference.operator import Operator
from pfbr.models import Model
from pfbr.training import Progress, TrainingSettings
from pfbr.training.progress import describe, text_bar
from pfbr.typing import Key


def train(
    model: str = typer.Argument(metavar="SPEC", help=spec.HELP),
    out: Path = typer.Option(..., "--out", help="The .pfbr file to write; FILE.checkpoint stands beside it meanwhile."),
    minutes: float | None = typer.Option(None, "--minutes", help="Budget in minutes (5 where no budget is given)."),
    steps: int | None = typer.Option(None, "--steps", help="Budget in steps: the one that repeats exactly."),
    particles: int = typer.Option(256, "--particles", help="Particles in training; any number works afterwards."),
    seed: int = typer.Option(0, "--seed", help="Same seed and steps, same operator."),
    resume: bool = typer.Option(False, "--resume", help="Go on from FILE.checkpoint, with the same options."),
    operator: str = typer.Option("auto", "--operator", help="auto, residual, or paper (the paper's architecture)."),
) -> None:
    """Learn Bayes' rule for a model, once.

    Shows the loss and, where the exact posterior is known, how many nats the operator stands above exact sampling on
    tasks held out. The best operator so far is kept: Ctrl-C stops early and writes it.

    Examples:

        pfbr train gaussian-mixture --out mixture.pfbr --minutes 5

        pfbr train my_model.py:model --out mine.pfbr --steps 2000
    """
    check_writable(out, suffix=".pfbr")
    train_operator(
        jax.random.key(seed),
        spec.resolve(model),
        out,
        minutes=minutes,
        steps=steps,
        particles=particles,
        resume=resume,
        operator=operator,
    )


def train_operator(
    key: Key,
    model: Model,
    out: Path,
    *,
    minutes: float | None = None,
    steps: int | None = None,
    particles: int = 256,
    resume: bool = False,
    operator: str = "auto",
) -> Operator:
    """Train with a bar on the terminal, write the best operator to `out`, and return it."""
    console = Console(stderr=True)
    settings = TrainingSettings(minutes=minutes, steps=steps, num_particles=particles)
    checkpoint = out.with_name(out.name + ".checkpoint")
    latest: list[Progress] = []

    def remember(report: Progress) -> None:
        show(report)
        latest[:] = [report]  # after it is shown: a Ctrl-C meanwhile means that this step is not in the answer

    try:
        with _bar(console) as show:
            trained, _ = pfbr.fit(
                key,
                model,
                operator=operator,
                settings=settings,
                checkpoint=str(checkpoint),
                resume=resume,
                progress=remember,
            )
    except KeyboardInterrupt:
        console.print("stopped before the first validation: there is nothing to keep yet.")
        raise typer.Exit(130) from None
    pfbr.save(out, trained)  # before anything else, so that a second Ctrl-C loses nothing
    used_to = learn_reference_statistics(jax.random.fold_in(key, 1), trained, model, num_particles=particles)
    trained = remember_shift(trained, used_to)
    pfbr.save(out, trained)
    finished = not latest or latest[0].fraction >= 1
    if finished:
        checkpoint.unlink(missing_ok=True)
    advice = "; stopped early, go on with --resume" if checkpoint.exists() else "" if finished else "; stopped early"
    console.print(_summary(out) + advice, soft_wrap=True, highlight=False)
    return trained


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A bar where there is a terminal; a line every tenth of the budget elsewhere."""
    if not console.is_terminal:
        yield text_bar()
        return
    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("compiling", total=1.0)
        yield lambda report: bar.update(task, completed=report.fraction, description=describe(report))


def _summary(out: Path) -> str:
    header = pfbr.read_header(out)
    known = header.get("exact_score") is not None
    score = f"{header['validation_score']:+.3f} " + ("nats above exact sampling" if known else "held-out loss")
    return f"wrote {out}: {header['steps']} steps in {header['seconds']:.0f} s, {score}"
