"""`pfbr infer`: posteriors of recorded streams into a file, or of a live one, line by line."""

from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from pfbr.cli import words
from pfbr.errors import InputError


def infer(
    model: str = typer.Argument(metavar="SPEC", help=words.SPEC),
    observations: str = typer.Argument(
        metavar="OBSERVATIONS", help=f"{words.FORMATS}; or `-`: JSON lines from standard input, answered one by one."
    ),
    method: str = typer.Option("auto", "--method", metavar="M", help=words.METHOD),
    out: Path | None = typer.Option(
        None,
        "--out",
        metavar="FILE",
        help="The file to write: .npz with all particles; or, of a table, .csv or .parquet with a row of summaries for "
        "each of its rows. Optional with `-`.",
    ),
    particles: int = typer.Option(256, "--particles", min=2, help=words.PARTICLES),
    seed: int = typer.Option(0, "--seed", min=0, help="Same seed, same particles, from a file and live."),
    history: int = typer.Option(
        4096, "--history", min=0, help="How many observations are kept so that posteriors stay exact; 0 for none."
    ),
    time: str | None = typer.Option(None, "--time", metavar="COLUMN", help=words.TIME),
    inputs: str | None = typer.Option(None, "--inputs", metavar="COLUMNS", help=words.INPUTS),
    observation: str | None = typer.Option(None, "--observation", metavar="COLUMNS", help=words.OBSERVATION),
    by: str | None = typer.Option(None, "--by", metavar="COLUMN", help=words.BY),
    start: str = typer.Option("0", "--start", metavar="T", help=words.START),
    time_unit: str | None = typer.Option(None, "--time-unit", metavar="U", help=words.TIME_UNIT),
    state: Path | None = typer.Option(
        None,
        "--state",
        metavar="FILE",
        help="With `-`: keep the stream in FILE and FILE.log; every answered line is on disk before its answer.",
    ),
) -> None:
    """Update a posterior with each observation of a stream.

    An empty cell, NA, NaN or null is what was not observed. The .npz holds, after every observation, `particles`
    (…, T, N, d) and `weights` (…, T, N), `mean` and `std` (…, T, d), `covariance` (…, T, d, d), and what the method
    says about each step, each (…, T): `ess`, `log_predictive`, `log_evidence`, `flagged` and more. Of a model with
    named unknowns there are `mean.NAME`, `std.NAME` and `samples.NAME` (…, T, N, …), on the model's own scale.

    A live stream answers every line at once; a bad line gets an answer with the key "error" and changes nothing. A line
    is `[0.3]`, `0.3`, `null` (nothing was observed), or {"observation": [0.3], "time": 3.5, "inputs": [1, 2]}. The line
    {"retract": null} takes the last observation back, {"retract": [0.3]} that one, where the unknown does not move;
    {"predict": 3} is answered with a forecast. Lines with an "id" belong to streams of their own.

    With --state FILE a stream that was killed at any moment goes on behind its last answered line. Give lines a number,
    {"n": 17, "observation": [0.3]}, and one that is sent again is answered again, and not counted twice.

    Examples:

        pfbr infer gaussian-mixture stream.csv --out posterior.npz

        pfbr infer logistic-regression:dim=2 rows.csv --inputs age,dose --observation recovered --out posterior.npz

        pfbr infer my_model.py:model track.csv --time seconds --out posterior.npz

        pfbr infer my_model.py:model sensors.parquet --by sensor --time when --start first --time-unit h --out out.csv

        echo '[0.3]' | pfbr infer gaussian-mixture - --method mixture
    """
    import sys

    from pfbr.cli import cells, posteriors, spec, tables
    from pfbr.cli.desk import Desk
    from pfbr.cli.durable import DurableDesk
    from pfbr.cli.foreign import answers_alone
    from pfbr.cli.lines import Columns
    from pfbr.cli.live import answer
    from pfbr.cli.observations import TABLES, read, read_table
    from pfbr.inference.run import run, run_table
    from pfbr.io.files import check_writable
    from pfbr.io.records import write_npz

    live = observations == "-"
    if out is None and not live:
        raise InputError("--out FILE.npz is needed to keep the posteriors of a file of observations.")
    if state is not None and not live:
        raise InputError("--state keeps a live stream: write `-` in place of the file of observations.")
    tabular = not live and is_tabular(Path(observations), out, by, start)
    if out is not None:
        check_writable(out, suffix=out.suffix if tabular and out.suffix in TABLES else ".npz")
    columns = Columns.of(time, inputs, observation, by)
    problem = spec.resolve(model)
    settings: dict[str, Any] = {
        "method": method,
        "key": seed,
        "num_particles": particles,
        "history": history,
        "start": start if start == "first" and tabular else cells.time(start, "--start"),
        "time_unit": time_unit,
    }
    console = Console(stderr=True)
    if live:
        with answers_alone(sys.stdout) as answers:
            desk = Desk(problem, settings, columns) if state is None else DurableDesk(state, problem, settings, columns)
            if isinstance(desk, DurableDesk) and desk.resumed:
                console.print(desk.resumed, highlight=False, soft_wrap=True)
            arrays = answer(desk, sys.stdin, answers, keep=out is not None)
            if isinstance(desk, DurableDesk):
                desk.close()
    elif tabular:
        table = read_table(Path(observations), columns)
        with console.status(f"updating {particles} particles through {len(table)} rows"):
            rows = run_table(problem, table, **settings)
        console.print(tables.in_words(rows), highlight=False, soft_wrap=True)
        assert out is not None  # asked for above
        tables.write(out, table, rows)
        console.print(f"wrote {out}: {len(table)} rows", highlight=False, soft_wrap=True)
        return
    else:
        streams = read(Path(observations), problem, columns)
        check_dates(streams.times, settings["start"])
        with console.status(f"updating {particles} particles through {streams.observations.shape} observations"):
            trace = run(problem, streams.observations, times=streams.times, inputs=streams.inputs, **settings)
        arrays = posteriors.arrays_of(trace)
        console.print(posteriors.in_words(trace, particles), highlight=False, soft_wrap=True)
    if out is not None and arrays:
        write_npz(out, arrays)
        held = ", ".join(f"{name} {value.shape}" for name, value in arrays.items())
        console.print(f"wrote {out}: {held}", highlight=False, soft_wrap=True)


def is_tabular(observations: Path, out: Path | None, by: str | None, start: str) -> bool:
    """Whether rows of a table are asked for, in order of time and by stream, or summaries of them."""
    from pfbr.cli.observations import TABLES

    asked = by is not None or start == "first" or (out is not None and out.suffix in TABLES)
    if asked and observations.suffix not in TABLES:
        what = "--by" if by is not None else "--start first" if start == "first" else f"--out {out}"
        raise InputError(f"{what} is for tables, {' and '.join(TABLES)} files; got {observations.name!r}.")
    return asked or observations.suffix == ".parquet"


def check_dates(times: list[Any] | None, start: Any) -> None:
    """Dates need a date to begin with."""
    if times is not None and not isinstance(times[0], float) and isinstance(start, float):
        raise InputError("the times are dates: give --start, the date of the prior, and --time-unit.")
