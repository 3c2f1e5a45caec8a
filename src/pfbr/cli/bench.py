"""`pfbr bench`: speed, beside baselines and beside what the machine can do, in one run."""

from rich.console import Console


def bench() -> None:
    """Time updates, velocity evaluations and training steps on this machine.

    Rows of a group are compared within one run: machines are noisy, ratios less so. Takes about two minutes.

    Example: `pfbr bench`
    """
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
