"""`pfbr train` writes an operator that can be used, keeps the best so far, and refuses before it works."""

import json

import numpy as np

import pfbr
from tests.cli.commands import pfbr_command, refused
from tests.cli.conftest import SMALL_TRAINING

SPEC = "gaussian-mean:dim=2,observation_std=1"
BAR = "pfbr.training.progress.text_bar"


def test_train_writes_an_operator_that_infer_uses(tmp_path, trained):
    file, result = trained
    assert "2 steps" in result.stderr
    assert [path.name for path in file.parent.iterdir()] == [file.name]  # the checkpoint is gone
    header = json.loads(pfbr_command("show", file).stdout)
    assert header["steps"] == 2
    assert header["settings"]["num_particles"] == 8
    (tmp_path / "stream.csv").write_text("0.5\n1.5\n")
    words = ("infer", "gaussian-mean:dim=1", tmp_path / "stream.csv", "--method", file, "--out", tmp_path / "out.npz")
    result = pfbr_command(*words, "--particles", 32)
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "out.npz") as held:
        assert held["particles"].shape == (2, 32, 1)


def test_an_interrupted_training_keeps_the_best_so_far(tmp_path, trained, monkeypatch):
    def interrupt(report):
        if report.step == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(BAR, lambda: interrupt)
    out = tmp_path / "early.pfbr"
    result = pfbr_command("train", *SMALL_TRAINING, "--out", out)
    assert result.exit_code == 0, result.output
    assert "stopped early" in result.stderr
    assert pfbr.read_header(out)["steps"] == 1
    pfbr.load(out)


def test_a_training_interrupted_at_once_leaves_nothing(tmp_path, trained, monkeypatch):
    def interrupt(report):
        raise KeyboardInterrupt

    monkeypatch.setattr(BAR, lambda: interrupt)
    out = tmp_path / "early.pfbr"
    result = pfbr_command("train", *SMALL_TRAINING, "--out", out)
    assert result.exit_code == 130
    assert "nothing to keep" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_train_refuses_before_it_works(tmp_path):
    out = tmp_path / "out.pfbr"
    refused(pfbr_command("train", "nothing", "--out", out), "Built in")
    refused(pfbr_command("train", SPEC, "--out", tmp_path / "out.bin"), ".pfbr")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 0), "must be positive; got 0")
    refused(pfbr_command("train", SPEC, "--out", out, "--minutes", -1), "must be positive")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 1, "--operator", "papre"), "papre")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 1, "--resume"), "out.pfbr.checkpoint")
    assert list(tmp_path.iterdir()) == []
