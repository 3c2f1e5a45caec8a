"""`pfbr reproduce`: an experiment of the paper, as records, figures and one page."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from pfbr.cli import words
from pfbr.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from pfbr.models.base import Model
    from pfbr.paper.contract import Experiment
    from pfbr.paper.digits import PreparedDigits


def reproduce(
    name: str = typer.Argument(metavar="NAME", help=f"One of {', '.join(words.EXPERIMENTS)}, or all."),
    out: Path = typer.Option(
        ..., "--out", metavar="DIR", help="For records, figures and page; the same again goes on."
    ),
    quick: bool = typer.Option(False, "--quick", help="Fewer streams, stages and particle counts: minutes in all."),
    retrain: bool = typer.Option(
        False, "--retrain", help="Train the operators again instead of using the pretrained ones."
    ),
    system: Path | None = typer.Option(
        None, "--system", metavar="FILE.npz", help="lds, table1: your own A and B (and transition_std, ...)."
    ),
    observations: Path | None = typer.Option(
        None, "--observations", metavar="FILE.npy", help="lds, table1: your own streams, (T, k) or (S, T, k)."
    ),
    data: Path | None = typer.Option(
        None, "--data", metavar="DIR", help="logistic-*: train on what `pfbr data mnist8m` made; with --retrain."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the test streams; the operators keep theirs."),
) -> None:
    """Run an experiment of the paper and draw it: records, figures (SVG and PNG), and one self-contained page.

    A run that was stopped goes on where it stood when it is called again with the same options.

    Example: `pfbr reproduce lds --out lds --quick`, then open lds/index.html
    """
    from pfbr.io.locks import held_directory
    from pfbr.paper.contract import Run
    from pfbr.paper.registry import EXPERIMENTS, draw, find, perform

    chosen = list(EXPERIMENTS.values()) if name == "all" else [find(name)]
    model, streams = _own(chosen, system, observations)
    stream = None if data is None else _stream(chosen, data)
    console = Console(stderr=True)
    with held_directory(out), console.status("starting") as status:

        def say(message: str) -> None:
            status.update(message)
            if not console.is_terminal:
                typer.echo(message, err=True)

        for experiment in chosen:
            directory = out / experiment.name if name == "all" else out
            run = Run(
                experiment,
                directory,
                quick=quick,
                retrain=retrain,
                seed=seed,
                system=model if experiment.own_system else None,
                observations=streams if experiment.own_system else None,
                data=stream if experiment.own_data else None,
                say=lambda message, title=experiment.name: say(f"{title}: {message}"),
            )
            page = perform(run)
        if name == "all":
            page = draw(out)
    console.print(f"Open the page: [bold]{page.resolve()}[/bold]", soft_wrap=True, highlight=False)


def _own(
    chosen: "list[Experiment]", system: Path | None, observations: Path | None
) -> "tuple[Model | None, np.ndarray | None]":
    """A user's system and streams, refused before the work where they do not fit."""
    import numpy as np

    from pfbr.cli import spec
    from pfbr.cli.observations import read
    from pfbr.paper.registry import EXPERIMENTS

    if system is None and observations is None:
        return None, None
    if not any(experiment.own_system for experiment in chosen):
        able = [experiment.name for experiment in EXPERIMENTS.values() if experiment.own_system]
        raise InputError(f"--system and --observations are for {' and '.join(able)}; {chosen[0].name} has neither.")
    model = None if system is None else spec.resolve(f"linear-dynamics:system={system}")
    if observations is None:
        return model, None
    if len(chosen) > 1 and model is None:
        raise InputError(
            "the systems of lds and table1 differ: give --observations with --system, or name one of them."
        )
    streams = read(observations, model or _paper_system(chosen[0])).observations
    if np.isnan(streams).any():
        raise InputError(f"{str(observations)!r} holds nan, a gap; the experiments need every observation.")
    return model, streams[None] if streams.ndim == 2 else streams


def _stream(chosen: "list[Experiment]", data: Path) -> "PreparedDigits":
    """A prepared stream, refused where no experiment reads one."""
    from pfbr.paper.digits import open_stream
    from pfbr.paper.registry import EXPERIMENTS

    able = [experiment.name for experiment in EXPERIMENTS.values() if experiment.own_data]
    if not any(experiment.own_data for experiment in chosen):
        raise InputError(f"--data is for {' and '.join(able)}; {chosen[0].name} reads no data.")
    return open_stream(data)


def _paper_system(experiment: "Experiment") -> "Model":
    from pfbr.models import LinearDynamics

    return LinearDynamics.random(experiment.full.system_seed, experiment.full.dim)
