"""The experiments by name, and what can be done with each: run it, draw it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from pfbr.errors import FileError, InputError
from pfbr.io.json_text import read_table
from pfbr.io.records import SETTINGS
from pfbr.paper.contract import CPU, WALL, Experiment, Results, Run
from pfbr.paper.experiments import gaussian, lds, logistic_meta, logistic_vi, mixture, table1
from pfbr.paper.views import gaussian as gaussian_view
from pfbr.paper.views import lds as lds_view
from pfbr.paper.views import logistic_meta as logistic_meta_view
from pfbr.paper.views import logistic_vi as logistic_vi_view
from pfbr.paper.views import mixture as mixture_view
from pfbr.paper.views import table1 as table1_view
from pfbr.reporting.figures import draw_figure
from pfbr.reporting.html import write_index, write_page
from pfbr.reporting.parts import Page


def _experiment(name: str, experiment, view, **options: bool) -> Experiment:
    return Experiment(name, experiment.FULL, experiment.QUICK, experiment.run, view.view, **options)


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        _experiment("gaussian", gaussian, gaussian_view),
        _experiment("mixture", mixture, mixture_view),
        _experiment("lds", lds, lds_view, own_system=True),
        _experiment("table1", table1, table1_view, own_system=True),
        _experiment("logistic-meta", logistic_meta, logistic_meta_view, own_data=True),
        _experiment("logistic-vi", logistic_vi, logistic_vi_view, own_data=True),
    )
}
PAGE = "index.html"


def find(name: str) -> Experiment:
    """An experiment by its name."""
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}, and all.")
    return EXPERIMENTS[name]


def perform(run: Run) -> Path:
    """Run an experiment to its end, from where its records stand, and draw it."""
    run.experiment.run(run)
    run.tick()
    return draw(run.directory)


def draw(directory: Path, say: Callable[[str], None] = lambda message: None) -> Path:
    """The page and the figures of a run, or of all runs in a directory, from their records alone."""
    if not (directory / SETTINGS).is_file():
        return _draw_all(directory, say)
    page = _view(directory)
    for name, charts in page.figures.items():
        say(f"drawing {name}")
        draw_figure(directory, name, charts)
    return write_page(directory / PAGE, page)


def is_run(directory: Path) -> bool:
    """Whether a directory holds the records of an experiment, or of several."""
    if (directory / SETTINGS).is_file():
        return "experiment" in read_table(directory / SETTINGS)
    return any((directory / name / SETTINGS).is_file() for name in EXPERIMENTS)


def _view(directory: Path) -> Page:
    results = Results(directory)
    page = find(results.options["experiment"]).view(results)
    made = (
        f"Made by `{results.command}`, seed {results.options['seed']}: {_duration(results.seconds(WALL))} on the "
        f"clock, {_duration(results.seconds(CPU))} of CPU time. Drawn from the records beside this page; "
        "`pfbr report DIR` draws it again."
    )
    return dataclasses.replace(page, facts=(*page.facts, made))


def _draw_all(directory: Path, say: Callable[[str], None]) -> Path:
    present = [name for name in EXPERIMENTS if (directory / name / SETTINGS).is_file()]
    if not present:
        raise FileError(f"{str(directory)!r} holds no records of an experiment. Make them with `pfbr reproduce`.")
    for name in present:
        draw(directory / name, say)
    return write_index(directory / PAGE, [(f"{name}/{PAGE}", _view(directory / name)) for name in present])


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
