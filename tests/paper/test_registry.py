"""An experiment from its run to its page: it can be killed, and drawn again from its records."""

import dataclasses
import functools
import time

import numpy as np
import pytest

from pfbr.baselines import Tuned
from pfbr.errors import FileError, InputError
from pfbr.inference.operator import gaussian_operator
from pfbr.io.records import Records
from pfbr.judging.evaluate import evaluate
from pfbr.paper import registry, tuned
from pfbr.paper.contract import CPU, WALL, Results, Run
from pfbr.paper.experiments import mixture
from pfbr.paper.trained import Trained

TINY = dataclasses.replace(
    mixture.QUICK,
    methods=mixture.FILMED,
    num_streams=2,
    num_stages=3,
    num_particles=32,
    num_draws=64,
    tuning_streams=1,
    cells=16,
)
STAGE = "return Number(document.documentElement.dataset.stage)"


def tiny(monkeypatch):
    """One candidate to tune, the training-free operator in place of most methods, no costs: quick to compile."""
    monkeypatch.setattr(mixture, "SMC", mixture.SMC[:1])
    monkeypatch.setattr(tuned, "tune", lambda key, candidates, *_, **__: Tuned(candidates[0], np.zeros(1)))
    monkeypatch.setattr(mixture, "Exact", gaussian_operator)
    monkeypatch.setattr(mixture, "evaluate", functools.partial(evaluate, costs=False))
    monkeypatch.setattr(mixture, "obtain", lambda *_, **__: Trained(gaussian_operator(), 1.0, "needs no training"))
    return dataclasses.replace(registry.find("mixture"), quick=TINY)


class KilledError(Exception):
    """Stands for a kill: it comes from where the run says what it does next."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A tiny run that was killed before its third method and then called again, and its records at the kill."""
    directory = tmp_path_factory.mktemp("mixture")
    with pytest.MonkeyPatch.context() as monkeypatch:
        experiment = tiny(monkeypatch)

        def die(message: str) -> None:
            if message.startswith("smc-one-pass"):
                raise KilledError

        with pytest.raises(KilledError):
            registry.perform(Run(experiment, directory, quick=True, say=die))
        measured = directory / "records/streams/measurements.jsonl"
        at_kill = measured.read_text()
        with measured.open("a") as file:
            file.write('{"method": "smc-one')  # the kill came while a line was being written
        said: list[str] = []
        registry.perform(Run(experiment, directory, quick=True, say=said.append))
    return directory, at_kill, said


def test_a_killed_run_goes_on_where_it_stood(finished):
    directory, at_kill, said = finished
    lines = (directory / "records/streams/measurements.jsonl").read_text()
    assert lines.startswith(at_kill)
    done = [m for m in Records(directory / "records/streams").measurements() if m.metric == "seconds of training"]
    assert [m.method for m in done] == list(mixture.FILMED)
    assert lines.count('"above exact", "stage": null') == 4  # nothing was measured twice
    assert not any(message.startswith("tuning") for message in said)  # nor tuned twice
    results = Results(directory)
    assert results.seconds(WALL) > 0
    assert results.seconds(CPU) > 0
    sessions = {m.method for m in Records(directory).measurements()}
    assert sessions == {"session 1", "session 2"}


def test_the_report_draws_the_same_files_from_the_records_alone(finished, tmp_path):
    directory, _, _ = finished
    copy = tmp_path / "copy"
    (copy / "records").mkdir(parents=True)
    for name in ("settings.json", "measurements.jsonl"):
        (copy / name).write_bytes((directory / name).read_bytes())
    (copy / "records/streams").mkdir()
    for path in (directory / "records/streams").iterdir():
        (copy / "records/streams" / path.name).write_bytes(path.read_bytes())
    assert registry.is_run(copy)
    assert registry.draw(copy) == copy / "index.html"
    drawn = sorted(path.name for path in copy.iterdir() if path.suffix in (".html", ".svg", ".png"))
    assert {"index.html", "evolution.svg", "evolution.png", "scores.svg", "scores.png"} <= set(drawn)
    assert [name for name in drawn if (copy / name).read_bytes() != (directory / name).read_bytes()] == []


def test_other_options_in_the_same_directory_are_refused(finished, monkeypatch):
    directory, _, _ = finished
    with pytest.raises(FileError, match="seed"):
        Run(tiny(monkeypatch), directory, quick=True, seed=1)


def test_an_unfinished_run_says_how_to_finish_it(tmp_path, monkeypatch):
    Run(tiny(monkeypatch), tmp_path, quick=True)
    with pytest.raises(FileError, match="pfbr reproduce mixture --out DIR --quick"):
        registry.draw(tmp_path)
    with pytest.raises(FileError, match="no records"):
        registry.draw(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no experiment 'lsd'"):
        registry.find("lsd")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)])
def test_the_page_opens_from_disk_and_nothing_is_clipped(chromium, finished, width, dark):
    page = finished[0] / "index.html"
    chromium.open(page, width=width, dark=dark)
    assert [url for url in chromium.requests() if not url.startswith("data:")] == [page.as_uri()]
    assert chromium.console() == []
    assert chromium.clipped() == []
    sizes = "[...document.querySelectorAll('p, li, td')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    assert chromium.run(f"return Math.min(...{sizes})") >= 12
    labels = (
        "return [...document.querySelectorAll('.chooser .plot svg')].map(s => s.querySelectorAll('text.name').length)"
    )
    assert all(count == 2 for count in chromium.run(labels))  # both axes have names
    legends = "return [...document.querySelectorAll('.chooser .legend')].map(l => l.children.length)"
    assert all(count >= 2 for count in chromium.run(legends))


@pytest.mark.browser
def test_the_slider_the_keys_and_the_buttons_change_the_picture(chromium, finished):
    chromium.open(finished[0] / "index.html")
    assert chromium.run(STAGE) == 3  # opens at the end of the stream

    def seen():
        places = "return [...document.querySelectorAll('[data-panel={}] .particle')].map(c => c.outerHTML).join()"
        shade = "return document.querySelector('[data-panel={}] image').getAttribute('href')"
        panels = ("pfbr", "pfbr-paper", "smc-one-pass", "exact")
        dots = {name: chromium.run(places.format(name)) for name in panels}
        return {**dots, **{f"shade of {name}": chromium.run(shade.format(name)) for name in ("truth", *panels)}}

    late = seen()
    chromium.run("const s = document.getElementById('stage'); s.value = 1; s.dispatchEvent(new Event('input'))")
    early = seen()
    assert [name for name in early if early[name] == late[name]] == []
    chromium.press("ArrowRight")
    assert chromium.run(STAGE) == 2
    chromium.press("Home")
    chromium.run("document.getElementById('play').click()")
    ends = time.monotonic() + 20
    while chromium.run(STAGE) < 2:
        assert time.monotonic() < ends, "the film does not play"
        time.sleep(0.05)
    chart = "return document.querySelector('.chooser .plot svg').getAttribute('aria-label')"
    before = chromium.run(chart)
    chromium.run("document.querySelector('.chooser .buttons button[aria-pressed=false]').click()")
    assert chromium.run(chart) != before
    assert chromium.console() == []
