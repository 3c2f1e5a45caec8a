"""`pfbr compare`: methods side by side on a user's model and streams, as records, a table and a figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from pfbr.cli import words
from pfbr.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from pfbr.cli.lines import Columns
    from pfbr.cli.observations import Streams
    from pfbr.judging.compare import Row
    from pfbr.models.base import Model


def compare(
    model: str = typer.Argument(metavar="SPEC", help=words.SPEC),
    observations: list[Path] = typer.Argument(
        metavar="OBSERVATIONS...", help=f"{words.FORMATS}; many files: many streams."
    ),
    methods: str = typer.Option(
        "",
        "--methods",
        metavar="A,B",
        help=f"Names with commas between. Nothing: auto, and the baselines that fit. {words.METHOD}",
    ),
    particles: int = typer.Option(256, "--particles", min=2, help="How many particles every method gets."),
    out: Path = typer.Option(..., "--out", help="The directory for the records; the same again goes on with them."),
    seed: int = typer.Option(0, "--seed", min=0, help="Same seed, same scores."),
    history: int = typer.Option(
        4096, "--history", min=0, help="How many observations a method that looks back may keep; 0 for none."
    ),
    minutes: float = typer.Option(2.0, "--minutes", min=0.0, help="Training time of each baseline that trains."),
    truth: str = typer.Option("auto", "--truth", help="auto: formula or grid; nuts: long Markov chains; none."),
    time: str | None = typer.Option(None, "--time", metavar="COLUMN", help=words.TIME),
    inputs: str | None = typer.Option(None, "--inputs", metavar="COLUMNS", help=words.INPUTS),
    observation: str | None = typer.Option(None, "--observation", metavar="COLUMNS", help=words.OBSERVATION),
    by: str | None = typer.Option(None, "--by", metavar="COLUMN", help=words.BY),
    start: str = typer.Option("0", "--start", metavar="T", help=words.START),
    time_unit: str | None = typer.Option(None, "--time-unit", metavar="U", help=words.TIME_UNIT),
) -> None:
    """Compare methods on your model and your streams.

    The table says how many nats each method is above as many draws of the exact posterior (lower is better), what an
    update costs in CPU time, how long the method was trained, and the memory of an update. "Next one" is −log of the
    density that the posterior gives the observation to come, which needs no truth.

    Example: `pfbr compare gaussian-mixture stream.csv --methods auto,exact,ibis,smc-one-pass --out runs`
    """
    from pfbr.cli import cells, spec
    from pfbr.cli.lines import Columns
    from pfbr.io.locks import held_directory
    from pfbr.judging.compare import compare as run_comparison
    from pfbr.reporting.comparison_figure import comparison_figure

    problem = spec.resolve(model)
    names = list(filter(None, map(str.strip, methods.split(",")))) or _fitting(problem)
    chosen = {_label(name): name for name in names}
    begin = start if start == "first" and by is not None else cells.time(start, "--start")
    if by is not None:
        streams = _by_column(observations, problem, Columns.of(time, inputs, observation, by), begin, time_unit)
        begin, time_unit = 0.0, None  # times are elapsed ones now
    else:
        streams = _streams(observations, problem, Columns.of(time, inputs, observation))
    console = Console(stderr=True)
    with held_directory(out), console.status("starting") as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"{what} ({done}/{total})")

        table = run_comparison(
            problem,
            streams.observations,
            chosen,
            times=streams.times,
            inputs=streams.inputs,
            key=seed,
            num_particles=particles,
            history=history,
            start=begin,
            time_unit=time_unit,
            out=out,
            minutes=minutes,
            truth=truth,
            progress=progress,
        )
    Console().print(_table(table, particles))
    console.print(f"wrote {out}/measurements.jsonl and {comparison_figure(out)}", soft_wrap=True, highlight=False)


def _label(name: str) -> str:
    """A file by its stem, anything else as it is called."""
    return Path(name).stem if name.endswith(".pfbr") else name


def _fitting(problem: "Model") -> list[str]:
    """The default method, and the baselines that can do the model and need no training."""
    import contextlib

    from pfbr import baselines
    from pfbr.errors import PfbrError
    from pfbr.inference.registry import as_method

    fitting = ["auto"]
    for name, rival in baselines.REGISTRY.items():
        with contextlib.suppress(PfbrError):
            if rival.train is None:
                as_method(name, problem)
                fitting.append(name)
    return fitting


def _streams(paths: list[Path], problem: "Model", columns: "Columns") -> "Streams":
    """One file as it is; several stacked as streams, which must then be equally long."""
    import jax
    import numpy as np

    from pfbr.cli.observations import Streams, read

    found = [read(path, problem, columns) for path in paths]
    if len(found) == 1:
        return found[0]
    if len({one.observations.shape for one in found}) > 1:
        shapes = ", ".join(f"{path.name} {one.observations.shape}" for path, one in zip(paths, found, strict=True))
        raise InputError(f"several files must hold streams of one shape; got {shapes}. Compare them one by one.")
    if len({one.times is None for one in found}) + len({one.inputs is None for one in found}) > 2:
        raise InputError("times and inputs must come with all of the files or with none. Compare them one by one.")
    return Streams(
        np.stack([one.observations for one in found]),
        None if found[0].times is None else [one.times for one in found],
        None
        if found[0].inputs is None
        else jax.tree.map(lambda *leaves: np.stack(leaves), *(one.inputs for one in found)),
    )


def _by_column(paths: list[Path], problem: "Model", columns: "Columns", start: Any, time_unit: str | None) -> "Streams":
    """The streams of one table, which must be equally long."""
    from pfbr.cli.observations import Streams, read_table
    from pfbr.inference.tables import stacked

    if len(paths) > 1:
        raise InputError(f"--by is for one table with all streams; got {len(paths)} files.")
    return Streams(*stacked(problem, read_table(paths[0], columns), start, time_unit))


def _table(rows: "list[Row]", particles: int) -> "Table":
    from rich.table import Table

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
