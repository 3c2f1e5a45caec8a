"""`pfbr bench`: speed, beside baselines and beside what the machine can do, in one run; and error against time."""

from pathlib import Path

import typer
from rich.console import Console


def bench(
    frontier: bool = typer.Option(False, "--frontier", help="Error against CPU time, ours and every rival."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="With --frontier: where records and page go."),
    problem: list[str] = typer.Option(
        [], "--problem", metavar="NAME", help="With --frontier: this one; may be repeated."
    ),
    method: list[str] = typer.Option([], "--method", metavar="M", help="With --frontier: this one; may be repeated."),
    streams: int = typer.Option(8, "--streams", min=1, help="With --frontier: of each problem."),
    most_ms: float = typer.Option(20.0, "--most-ms", min=0.01, help="With --frontier: stop a method at this time."),
    seed: int = typer.Option(7000, "--seed", min=0, help="With --frontier: of the first stream."),
) -> None:
    """Time updates, velocity evaluations and training steps on this machine; or draw the frontier.

    Rows of a group are compared within one run: machines are noisy, ratios less so. Takes about two minutes.

    With --frontier every method follows the same streams with more and more particles, on six problems. That takes an
    hour or two, most of it compilation; started again with the same --out it goes on where it stopped.

    Examples: `pfbr bench`, `pfbr bench --frontier --problem volatility --out frontier`
    """
    if frontier:
        _frontier(out, problem, method, streams, most_ms, seed)
        return
    _timings()


def _timings() -> None:
    from rich.table import Table

    from pfbr.judging.bench import timings

    console = Console()
    first: dict[str, float] = {}
    table = Table("what", "milliseconds", "ratio to the group's first", "")
    with console.status("measuring…") as status:
        for line in timings():
            if line.group not in first:
                first[line.group] = line.seconds
                table.add_section()
                table.add_row(f"[bold]{line.group}[/bold]")
            status.update(f"{line.group}: {line.name}")
            table.add_row(
                f"  {line.name}", f"{1e3 * line.seconds:.3f}", f"{line.seconds / first[line.group]:.2f}", line.note
            )
    console.print(table)


def _frontier(out: Path | None, problems: list[str], methods: list[str], streams: int, most_ms: float, seed: int):
    from pfbr.errors import InputError
    from pfbr.io.locks import held_directory
    from pfbr.io.records import Records
    from pfbr.judging.frontier.measure import OURS, RIVALS, FrontierSettings
    from pfbr.judging.frontier.measure import frontier as run
    from pfbr.judging.frontier.problems import PROBLEMS
    from pfbr.reporting.frontier_page import frontier_page

    if out is None:
        raise InputError("--frontier needs --out DIR, where the records and the page go.")
    for name, known in ((problems, PROBLEMS), (methods, (*OURS, *RIVALS))):
        if unknown := [one for one in name if one not in known]:
            raise InputError(f"there is no {unknown[0]!r}; there are {', '.join(known)}.")
    console = Console()
    settings = FrontierSettings(seed=seed, streams=streams, most_milliseconds=most_ms)
    with held_directory(out), console.status("starting…") as status:
        records = Records(out, {"seed": seed, "streams": streams})

        def say(message: str) -> None:
            status.update(message)
            if not console.is_terminal:
                console.print(message)

        try:
            run(records, problems or list(PROBLEMS), methods or [*OURS, *RIVALS], settings, say)
        except KeyboardInterrupt:
            console.print("Stopped; what was measured is kept, and the page shows it.")
        page = frontier_page(out)
    console.print(f"Page: {page}")
