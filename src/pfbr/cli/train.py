"""`pfbr train`: learn an operator for a model, in view, into one file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from pfbr.cli import words

if TYPE_CHECKING:
    from pfbr.inference.operator import Operator
    from pfbr.models.base import Model
    from pfbr.training.progress import Progress


def train(
    model: str = typer.Argument(metavar="SPEC", help=words.SPEC),
    out: Path = typer.Option(..., "--out", help="The .pfbr file to write; FILE.checkpoint stands beside it meanwhile."),
    minutes: float | None = typer.Option(None, "--minutes", help="Budget in minutes (5 where no budget is given)."),
    steps: int | None = typer.Option(None, "--steps", help="Budget in steps: the one that repeats exactly."),
    particles: int = typer.Option(256, "--particles", help="Particles in training; any number works afterwards."),
    seed: int = typer.Option(0, "--seed", min=0, help="Same seed and steps, same operator."),
    resume: bool = typer.Option(False, "--resume", help="Go on from FILE.checkpoint, with the same options."),
    operator: str = typer.Option(
        "auto",
        "--operator",
        help="residual, general (the map for every model), paper; auto: the better of the first two.",
    ),
    processes: int = typer.Option(1, "--processes", min=1, help="Divide the tasks of a step among so many processes."),
    coordinator: str | None = typer.Option(
        None, "--coordinator", help="HOST:PORT of the first process, where they are started one by one."
    ),
    process: int | None = typer.Option(None, "--process", min=0, help="Which one this is then, from 0."),
    cluster: bool = typer.Option(False, "--cluster", help="Join the processes of SLURM, Open MPI or Kubernetes."),
) -> None:
    """Learn Bayes' rule for a model, once; `pfbr infer SPEC OBSERVATIONS --method FILE` uses it.

    Shows the loss and, where the exact posterior is known, how many nats the operator stands above exact sampling on
    tasks held out. The best operator so far is kept: Ctrl-C stops early and writes it. With --processes, those of one
    machine are started here; on several machines start one on each, with --coordinator and --process, or --cluster. The
    first writes the file. A training goes on with another number of processes too.

    Examples:

        pfbr train gaussian-mixture --out mixture.pfbr --minutes 5

        pfbr train my_model.py:model --out mine.pfbr --steps 2000

        pfbr train my_model.py:model --out mine.pfbr --minutes 60 --processes 4
    """
    several = cluster or coordinator is not None or process is not None
    if processes > 1 and not several:
        from pfbr.scale.launch import launch

        given = {"--minutes": minutes, "--steps": steps, "--particles": particles, "--seed": seed}
        told = [f"{name}={value}" for name, value in given.items() if value is not None]
        flags = [*told, f"--operator={operator}", *(["--resume"] if resume else [])]
        raise typer.Exit(launch(["train", model, f"--out={out}", *flags], processes))
    if several:
        from pfbr.scale.processes import join

        join() if cluster else join(coordinator, processes, process)
    from pfbr.cli import spec
    from pfbr.io.files import check_writable
    from pfbr.io.locks import held

    check_writable(out, suffix=".pfbr")
    problem = spec.resolve(model)
    with held(out) if not several or _first() else nullcontext():
        train_operator(
            problem,
            out,
            seed=seed,
            minutes=minutes,
            steps=steps,
            particles=particles,
            resume=resume,
            operator=operator,
            mesh="all" if several else None,
        )


def _first() -> bool:
    import jax

    return jax.process_index() == 0


def train_operator(
    model: "Model",
    out: Path,
    *,
    seed: int = 0,
    minutes: float | None = None,
    steps: int | None = None,
    particles: int = 256,
    resume: bool = False,
    operator: str = "auto",
    mesh: str | None = None,
) -> "Operator":
    """Train with a bar on the terminal, write the best operator to `out`, and return it. Of several processes the first
    does the writing and the telling."""
    from pfbr.inference.operator_file import save
    from pfbr.training.fit import fit
    from pfbr.training.settings import TrainingSettings

    console = Console(stderr=True)
    settings = TrainingSettings(minutes=minutes, steps=steps, num_particles=particles)
    checkpoint = out.with_name(out.name + ".checkpoint")
    latest: list[Progress] = []

    def remember(report: "Progress") -> None:
        show(report)
        latest[:] = [report]  # after it is shown: a Ctrl-C meanwhile means that this step is not in the answer

    try:
        with _bar(console) as show:
            trained, _ = fit(
                model,
                key=seed,
                operator=operator,
                settings=settings,
                checkpoint=str(checkpoint),
                resume=resume,
                progress=remember,
                mesh=mesh,
            )
    except KeyboardInterrupt:
        kept = f"go on from {checkpoint} with --resume" if checkpoint.exists() else "there is nothing to keep yet"
        console.print(f"stopped: {kept}.", soft_wrap=True, highlight=False)
        raise typer.Exit(130) from None
    if mesh is not None and not _first():
        return trained
    save(out, trained)
    finished = not latest or latest[0].fraction >= 1
    if finished:
        checkpoint.unlink(missing_ok=True)
    advice = "; stopped early, go on with --resume" if checkpoint.exists() else "" if finished else "; stopped early"
    console.print(_summary(out) + advice, soft_wrap=True, highlight=False)
    return trained


@contextmanager
def _bar(console: Console) -> Iterator[Callable[["Progress"], None]]:
    """A bar where there is a terminal; a line every tenth of the budget elsewhere."""
    from pfbr.training import progress

    if not console.is_terminal:
        yield progress.text_bar()
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("compiling", total=1.0)
        yield lambda report: bar.update(task, completed=report.fraction, description=progress.describe(report))


def _summary(out: Path) -> str:
    from pfbr.inference.operator_file import read_header

    header = read_header(out)
    known = header.get("exact_score") is not None
    score = f"{header['validation_score']:+.3f} " + ("nats above exact sampling" if known else "held-out loss")
    return f"wrote {out}: {header['steps']} steps in {header['seconds']:.0f} s, {score}"
