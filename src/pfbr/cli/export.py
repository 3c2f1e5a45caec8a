"""`pfbr export`: one step as a file that runs with jax alone."""

from pathlib import Path

import typer

from pfbr.cli import words


def export(
    model: str = typer.Argument(metavar="SPEC", help=words.SPEC),
    out: Path = typer.Option(..., "--out", help="The directory for the step and its loader."),
    method: str = typer.Option("auto", "--method", metavar="M", help=words.METHOD),
    particles: int = typer.Option(256, "--particles", min=2, help="How many particles a stream has."),
    history: int = typer.Option(256, "--history", min=0, help="How many observations a state keeps; 0 for none."),
    platforms: str = typer.Option("cpu", "--platforms", metavar="A,B", help="What it is compiled for: cpu, cuda, tpu."),
) -> None:
    """Write the step of a method on a model as StableHLO, to run it without pfbr and without the model's code.

    The directory holds `start.bin` and `step.bin`, `step.json` that tells what they take, and `pfbr_step.py`, which
    runs them with jax and NumPy: `Stream(seed=0).update([0.3])["mean"]`. The model must tell the shape of its
    observations and inputs (`sample_observation`, `sample_inputs`).

    Example: `pfbr export gaussian-mixture --method mixture --out step`
    """
    from pfbr.cli import spec
    from pfbr.inference.exported import export_step
    from pfbr.io.locks import held_directory

    problem = spec.resolve(model)
    chosen = tuple(filter(None, map(str.strip, platforms.split(","))))
    with held_directory(out):
        said = export_step(problem, out, method=method, num_particles=particles, history=history, platforms=chosen)
    size = sum((out / name).stat().st_size for name in said["sha256"])
    typer.echo(f"{out}: {said['method']} on {said['model']}, {said['particles']} particles, {size / 1e3:.0f} kB.")
