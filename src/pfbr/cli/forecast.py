"""`pfbr forecast`: what comes next in a recorded stream, as a table."""

from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from pfbr.cli import words
from pfbr.errors import InputError


def forecast(
    model: str = typer.Argument(metavar="SPEC", help=words.SPEC),
    observations: Path = typer.Argument(metavar="OBSERVATIONS", help=f"{words.FORMATS}; one stream."),
    horizon: int | None = typer.Option(None, "--horizon", metavar="H", help="How many steps of one unit of time."),
    ahead: Path | None = typer.Option(
        None, "--ahead", metavar="FILE.csv", help="The times and inputs to come, in columns as --time and --inputs say."
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="FILE", help="A .csv, .json or .npz to write; without it the table is printed."
    ),
    quantiles: str = typer.Option("0.05,0.5,0.95", "--quantiles", metavar="Q", help="Which ones, commas between."),
    scores: bool = typer.Option(False, "--scores", help="Say how good one-step-ahead forecasts were along the stream."),
    method: str = typer.Option("auto", "--method", metavar="M", help=words.METHOD),
    particles: int = typer.Option(256, "--particles", min=2, help=words.PARTICLES),
    seed: int = typer.Option(0, "--seed", min=0, help=words.SEED),
    history: int = typer.Option(4096, "--history", min=0, help="How many observations are kept; 0 for none."),
    time: str | None = typer.Option(None, "--time", metavar="COLUMN", help=words.TIME),
    inputs: str | None = typer.Option(None, "--inputs", metavar="COLUMNS", help=words.INPUTS),
    observation: str | None = typer.Option(None, "--observation", metavar="COLUMNS", help=words.OBSERVATION),
    start: str = typer.Option("0", "--start", metavar="T", help=words.START),
    time_unit: str | None = typer.Option(None, "--time-unit", metavar="U", help=words.TIME_UNIT),
) -> None:
    """Forecast states and observations after the end of a stream.

    The stream is absorbed as by `pfbr infer`, then every particle is moved on by the model, with its parameters where
    it has some. The table has a row for each number at each time: `step`, `time`, `of` (state or observation), `name`,
    `mean`, `std`, and the quantiles. The .json holds the same by name; the .npz also the `samples` (H, N, …).

    A model that names `inputs` needs those to come: --ahead FILE.csv has a row for each step, with the columns that
    --inputs and --time name. Observations are drawn with the model's `sample_observation`; without it there are states
    only. --scores tells the CRPS, and coverage and width of intervals, of every observation of the stream as it was
    forecast before it came.

    Examples:

        pfbr forecast linear-dynamics:dim=2 stream.csv --horizon 7

        pfbr forecast my_model.py:model sales.csv --time day --start 2024-01-01 --time-unit D --horizon 14

        pfbr forecast my_model.py:model load.csv --time t --inputs temperature --ahead weather.csv --out load.npz
    """
    from pfbr.cli import cells, forecasts, spec
    from pfbr.cli.ahead import read_ahead
    from pfbr.cli.infer import check_dates
    from pfbr.cli.lines import Columns
    from pfbr.cli.observations import read
    from pfbr.inference.run import run
    from pfbr.io.files import check_writable
    from pfbr.models.base import has_observations

    if (horizon is None) == (ahead is None):
        raise InputError("say how far to look: --horizon H, or --ahead FILE.csv with the steps to come, one of them.")
    levels = forecasts.checked_levels(quantiles)
    if out is not None:
        if out.suffix not in forecasts.SUFFIXES:
            raise InputError(f"--out must end in {', '.join(forecasts.SUFFIXES)}; got {out.name!r}.")
        check_writable(out, suffix=out.suffix)
    columns = Columns.of(time, inputs, observation)
    problem = spec.resolve(model)
    streams = read(observations, problem, columns)
    begin = cells.time(start, "--start")
    check_dates(streams.times, begin)
    steps: dict[str, Any] = {"horizon": horizon}
    if ahead is not None:
        length, times, given = read_ahead(ahead, problem, columns)
        steps = {"times": times, "inputs": given} if times is not None else {"horizon": length, "inputs": given}
    console = Console(stderr=True)
    with console.status(f"updating {particles} particles through {len(streams.observations)} observations"):
        trace = run(
            problem,
            streams.observations,
            times=streams.times,
            inputs=streams.inputs,
            method=method,
            key=seed,
            num_particles=particles,
            history=history,
            start=begin,
            time_unit=time_unit,
        )
        ahead_of_it = trace.session.predict(**steps)
    observes = has_observations(problem)
    if scores:
        told = ", ".join(f"{name} {value:.4g}" for name, value in trace.scores().summary().items())
        console.print(f"one step ahead, along the stream: {told}", highlight=False, soft_wrap=True)
    if out is None:
        typer.echo(forecasts.as_csv(ahead_of_it, levels, observes=observes), nl=False)
        return
    forecasts.write(out, ahead_of_it, levels, observes=observes)
    what = "states and observations" if observes else "states (the model draws no observations)"
    console.print(f"wrote {out}: {what} at {len(ahead_of_it)} times to come", highlight=False, soft_wrap=True)
