"""The experiments by name, and what can be done with each: run it, draw it."""

from collections.abc import Callable
from pathlib import Path

from pfbr.errors import FileError, InputError
from pfbr.io.records import SETTINGS
from pfbr.paper.contract import CPU, WALL, Experiment, Results, Run
from pfbr.paper.gaussian_view import GAUSSIAN
from pfbr.paper.lds_view import LDS
from pfbr.paper.logistic_meta import META
from pfbr.paper.logistic_vi import VI
from pfbr.paper.mixture_view import MIXTURE
from pfbr.paper.table1_view import TABLE1
from pfbr.reporting.figures import draw_figure
from pfbr.reporting.html import write_index, write_page
from pfbr.reporting.parts import Page

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (GAUSSIAN, MIXTURE, LDS, TABLE1, META, VI)
}
PAGE = "index.html"


def find(name: str) -> Experiment:
    """An experiment by its name."""
    if name not in EXPERIMENTS:
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
        return '"experiment"' in (directory / SETTINGS).read_text(encoding="utf-8")
    return any((directory / name / SETTINGS).is_file() for name in EXPERIMENTS)


def _view(directory: Path) -> Page:
    results = Results(directory)
    page = find(results.described["experiment"]).view(results)
    made = (
        f"Made by `{results.command}`, seed {results.described['seed']}: {_duration(results.seconds(WALL))} on the "
        f"clock, {_duration(results.seconds(CPU))} of CPU time. Drawn from the records beside this page; "
        "`pfbr report DIR` draws it again."
    )
    return Page(page.title, page.lead, page.findings, page.parts, page.figures, (*page.facts, made))


def _draw_all(directory: Path, say: Callable[[str], None]) -> Path:
    present = [name for name in EXPERIMENTS if (directory / name / SETTINGS).is_file()]
    if not present:
        raise FileError(f"{str(directory)!r} holds no records of an experiment. Make them with `pfbr reproduce`.")
    for name in present:
        draw(directory / name, say)
    return write_index(directory / PAGE, [(f"{name}/{PAGE}", _view(directory / name)) for name in present])


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
