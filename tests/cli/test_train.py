"""`pfbr train` writes an operator that can be used, keeps the best so far, and refuses before it works.

Training itself is the slow tests' matter; elsewhere a stand-in for `fit` returns an operator that was trained before.
"""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import pfbr
from pfbr.training.progress import Progress
from tests.cli.commands import pfbr_command, refused

SPEC = "gaussian-mean:dim=2,observation_std=1"
SMALL_TRAINING = ("gaussian-mean:dim=1", "--operator", "paper", "--steps", 2, "--particles", 8)  # soonest to compile
BAR = "pfbr.training.progress.text_bar"


class Fit:
    """Takes two steps, writes a checkpoint after the first, and stops where it is told to."""

    def __init__(self, interrupted_at: int | None = None):
        self.interrupted_at, self.asked = interrupted_at, {}

    def __call__(self, model, *, checkpoint, progress, settings, **asked):
        self.asked = {"model": model, "settings": settings, **asked}
        for step in (1, 2):
            if step == self.interrupted_at:
                if step == 1:
                    raise KeyboardInterrupt  # nothing was validated yet
                break
            Path(checkpoint).write_bytes(b"checkpoint")
            progress(Progress(step, step / 2, 0.5, 0.1, 0.1, True, 1.0, 1.0, 0))
        return pfbr.pretrained("static-2d"), None


@pytest.fixture
def stand_in(monkeypatch):
    def install(**how) -> Fit:
        fit = Fit(**how)
        monkeypatch.setattr(importlib.import_module("pfbr.training.fit"), "fit", fit)
        return fit

    return install


def test_it_writes_the_operator_and_clears_up(tmp_path, stand_in):
    fit, out = stand_in(), tmp_path / "a.pfbr"
    result = pfbr_command(
        "train", SPEC, "--out", out, "--steps", 2, "--particles", 8, "--seed", 3, "--operator", "paper"
    )
    assert result.exit_code == 0, result.output
    assert f"wrote {out}" in result.stderr
    assert "loss 0.500" in result.stderr  # a line every tenth of the budget
    assert "stopped early" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.pfbr"]  # the checkpoint is gone
    assert pfbr.load(out).provenance == pfbr.pretrained("static-2d").provenance
    assert (fit.asked["key"], fit.asked["operator"], fit.asked["resume"]) == (3, "paper", False)
    assert (fit.asked["settings"].steps, fit.asked["settings"].num_particles) == (2, 8)
    assert fit.asked["model"] == pfbr.models.GaussianMean(2, 1.0, 1.0)


def test_an_interrupted_training_keeps_the_best_so_far(tmp_path, stand_in):
    stand_in(interrupted_at=2)
    out = tmp_path / "early.pfbr"
    result = pfbr_command("train", SPEC, "--out", out, "--steps", 2)
    assert result.exit_code == 0, result.output
    assert "stopped early, go on with --resume" in result.stderr
    pfbr.load(out)
    assert (tmp_path / "early.pfbr.checkpoint").exists()


def test_a_training_interrupted_at_once_leaves_nothing(tmp_path, stand_in):
    stand_in(interrupted_at=1)
    result = pfbr_command("train", SPEC, "--out", tmp_path / "early.pfbr", "--steps", 2)
    assert result.exit_code == 130
    assert "nothing to keep" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_refuses_before_it_works(tmp_path):
    out = tmp_path / "out.pfbr"
    refused(pfbr_command("train", "nothing", "--out", out), "Built in")
    refused(pfbr_command("train", SPEC, "--out", tmp_path / "out.bin"), ".pfbr")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 0), "`steps` must be at least 1; got 0")
    refused(pfbr_command("train", SPEC, "--out", out, "--minutes", -1), "`minutes` must be above 0")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 1, "--operator", "papre"), "papre")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 1, "--resume"), "out.pfbr.checkpoint")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_real_training_writes_an_operator_that_infer_uses(tmp_path):
    file = tmp_path / "trained" / "operator.pfbr"
    file.parent.mkdir()
    result = pfbr_command("train", *SMALL_TRAINING, "--out", file)
    assert result.exit_code == 0, result.output
    assert "2 steps" in result.stderr
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    header = json.loads(pfbr_command("show", file).stdout)
    assert header["steps"] == 2
    assert header["settings"]["num_particles"] == 8
    (tmp_path / "stream.csv").write_text("0.5\n1.5\n")
    words = ("infer", "gaussian-mean:dim=1", tmp_path / "stream.csv", "--method", file, "--out", tmp_path / "out.npz")
    result = pfbr_command(*words, "--particles", 32)
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "out.npz") as held:
        assert held["particles"].shape == (2, 32, 1)


@pytest.mark.slow
def test_a_real_training_that_is_interrupted_keeps_the_best_so_far(tmp_path, monkeypatch):
    def interrupt(report):
        if report.step == interrupted_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(BAR, lambda: interrupt)
    out, interrupted_at = tmp_path / "early.pfbr", 1
    result = pfbr_command("train", *SMALL_TRAINING, "--out", out)
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []
    interrupted_at = 2
    result = pfbr_command("train", *SMALL_TRAINING, "--out", out)
    assert result.exit_code == 0, result.output
    assert "stopped early" in result.stderr
    assert pfbr.read_header(out)["steps"] == 1
    pfbr.load(out)
