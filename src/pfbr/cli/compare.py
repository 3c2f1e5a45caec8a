"""`pfbr compare`: the operator and its rivals side by side on a user's model, as records, a table and a figure."""

from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import pfbr
from pfbr import baselines
from pfbr.cli import spec
from pfbr.cli.observations import FORMATS, read
from pfbr.cli.operators import HELP, named_operator
from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.judging.compare import Row
from pfbr.judging.compare import compare as run_comparison
from pfbr.reporting.comparison_figure import comparison_figure


def compare(
    model: str = typer.Argument(metavar="SPEC", help=spec.HELP),
    observations: list[Path] = typer.Argument(metavar="OBSERVATIONS...", help=f"{FORMATS}; many files: many streams."),
    methods: str = typer.Option(
        "", "--methods", help=f"Names with commas between: {', '.join(baselines.names())}. Nothing: those that fit."
    ),
    particles: int = typer.Option(256, "--particles", min=2, help="How many particles every method gets."),
    out: Path = typer.Option(..., "--out", help="The directory for the records; the same again goes on with them."),
    operator: list[str] = typer.Option([], "--operator", help=f"{HELP} May be given several times."),
    seed: int = typer.Option(0, "--seed", help="Same seed, same scores."),
    minutes: float = typer.Option(2.0, "--minutes", min=0.0, help="Training time of each method that trains."),
    truth: str = typer.Option("auto", "--truth", help="auto: formula or grid; nuts: long Markov chains; none."),
) -> None:
    """Compare methods on your model and your streams.

    The table says how many nats each method is above as many draws of the exact posterior (lower is better), what an
    update costs in CPU time, how long the method was trained, and the memory of an update. "Next one" is −log of the
    density that the posterior gives the observation to come, which needs no truth.

    Example: `pfbr compare gaussian-mixture stream.csv --methods exact,ibis,smc-one-pass --operator gaussian --out runs`
    """
    problem = spec.resolve(model)
    chosen: dict[str, Method] = {}
    for path in operator:
        chosen[_label(path)] = named_operator(path)
    names = [name.strip() for name in methods.split(",") if name.strip()] if methods else _fitting(problem)
    console = Console(stderr=True)
    with console.status("reading") as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"{what} ({done}/{total})")

        table = run_comparison(
            problem,
            _streams(observations, problem),
            [*names],
            particles,
            out,
            seed=seed,
            minutes=minutes,
            truth=truth,
            own=chosen,
            progress=progress,
        )
    Console().print(_table(table, particles))
    console.print(f"wrote {out}/measurements.jsonl and {comparison_figure(out)}")


def _label(path: str) -> str:
    return "pfbr" if path == "gaussian" else f"pfbr {Path(path).stem}"


def _fitting(problem: pfbr.Model) -> list[str]:
    """The rivals that can do the model and need no training."""
    fitting = []
    for name, rival in baselines.REGISTRY.items():
        if rival.train is None and rival.ready(problem).unsupported(problem) is None:
            fitting.append(name)
    return fitting


def _streams(paths: list[Path], problem: pfbr.Model) -> np.ndarray:
    """One file as it is; several stacked as streams, which must then be equally long."""
    arrays = [read(path, problem) for path in paths]
    if len(arrays) == 1:
        return arrays[0]
    if len({a.shape for a in arrays}) > 1:
        shapes = ", ".join(f"{path.name} {a.shape}" for path, a in zip(paths, arrays, strict=True))
        raise InputError(f"several files must hold streams of one shape; got {shapes}. Compare them one by one.")
    return np.stack(arrays)


def _table(rows: list[Row], particles: int) -> Table:
    table = Table(title=f"{particles} particles; best first")
    table.add_column("method", no_wrap=True)
    for name in ("above exact (nats)", "next one (nats)", "CPU per update", "training", "memory"):
        table.add_column(name, justify="right", no_wrap=name.startswith("above"))
    for row in rows:
        above = "unknown" if row.above_exact is None else f"{row.above_exact:+.3f}"
        if row.above_exact_error is not None:
            above += f" ± {row.above_exact_error:.3f}"
        table.add_row(
            row.method,
            above,
            f"{row.predictive:.3f}",
            f"{1e3 * row.seconds_per_update:.2f} ms",
            f"{row.seconds_of_training:.0f} s",
            f"{row.bytes_of_memory / 2**10:.0f} KiB",
        )
    return table
