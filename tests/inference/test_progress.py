"""A bar says how far a run is, changes nothing of it, and is silent unless asked for."""

import io

import numpy as np
import pandas as pd
import pytest

import pfbr
from pfbr.inference import progress
from pfbr.models import GaussianMean

ROWS = np.linspace(-1.0, 1.0, 100, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32)
SETTINGS = {"method": "prior", "num_particles": 64}  # compiles in no time


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _no_notebook(monkeypatch):
    monkeypatch.delitem(progress.sys.modules, "ipykernel", raising=False)


def test_on_a_terminal_one_line_is_drawn_again_and_again():
    stream = Terminal()
    bar = progress.Bar(100, stream)
    for done in (1, 50, 50, 100):
        bar.show(done)
    lines = stream.getvalue().split("\r\x1b[K")[1:]
    assert "compiling" in lines[0]
    assert [line.split(" observations")[0].split()[-3:] for line in lines[1:]] == [
        ["1", "of", "100"],
        ["50", "of", "100"],
        ["100", "of", "100"],
    ]
    assert lines[2].count("█") == 12
    assert lines[-1].endswith("0:00 left\n")


def test_elsewhere_there_is_a_line_every_tenth():
    stream = io.StringIO()
    bar = progress.Bar(100, stream)
    for done in range(1, 101):
        bar.show(done)
    assert len(stream.getvalue().splitlines()) == 1 + 10


def test_a_run_with_a_bar_is_the_same_run(capsys):
    quiet = pfbr.run(GaussianMean(2), ROWS, **SETTINGS)
    assert capsys.readouterr().err == ""
    told = pfbr.run(GaussianMean(2), ROWS, progress=True, **SETTINGS)
    lines = capsys.readouterr().err.splitlines()
    assert "compiling" in lines[0]
    assert "100 of 100" in lines[-1]
    assert len(lines) == 11
    assert np.array_equal(told.particles, quiet.particles)


def test_many_streams_sessions_and_tables_have_one_too(capsys):
    pfbr.run(GaussianMean(2), np.stack([ROWS, ROWS]), progress=True, **SETTINGS)
    assert "100 of 100" in capsys.readouterr().err
    session = pfbr.Session(GaussianMean(2), **SETTINGS)
    session.update_many(ROWS, progress=True)
    assert "100 of 100" in capsys.readouterr().err
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(stream=np.repeat(["one", "two"], 50))
    pfbr.run(GaussianMean(2), frame, by="stream", observation=["a", "b"], progress=True, **SETTINGS)
    assert "100 of 100" in capsys.readouterr().err


def test_an_error_leaves_no_bar_behind():
    with pytest.raises(RuntimeError), progress.shown(10, True):
        raise RuntimeError
    assert progress._current is None
