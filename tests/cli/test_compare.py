"""`pfbr compare` runs methods on files of observations, shows a table, and refuses what it cannot do."""

import numpy as np
import pytest

from pfbr.cli.compare import _fitting
from pfbr.io.records import Records
from pfbr.models import GaussianMean, LinearDynamics
from tests.cli.commands import pfbr_command, refused

SPEC = "gaussian-mean:dim=2,observation_std=1"
WIDE = {"COLUMNS": "160"}


@pytest.fixture
def two_files(tmp_path):
    for seed, name in enumerate(("a.csv", "b.csv")):
        np.savetxt(tmp_path / name, np.random.default_rng(seed).normal(size=(3, 2)), delimiter=",")
    return tmp_path / "a.csv", tmp_path / "b.csv"


def test_a_table_records_and_a_figure(tmp_path, two_files):
    out = tmp_path / "runs"
    words = ("compare", SPEC, *two_files, "--methods", "enkf,prior", "--particles", 32, "--out", out)
    result = pfbr_command(*words, env=WIDE)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if "enkf" in line or "prior" in line]
    assert "enkf" in lines[0]  # best first
    assert (out / "scores.png").stat().st_size > 1000
    measured = Records(out).measurements()
    assert {m.method for m in measured} == {"enkf", "prior"}
    assert {m.num_sequences for m in measured} == {2}


def test_own_methods_and_baselines_by_one_option_and_a_figure_that_can_be_drawn_again(tmp_path, stream):
    np.save(tmp_path / "stream.npy", stream)
    out = tmp_path / "runs"
    words = ("compare", SPEC, tmp_path / "stream.npy", "--methods", "auto, gaussian, prior")
    result = pfbr_command(*words, "--particles", 32, "--out", out, env=WIDE)
    assert result.exit_code == 0, result.output
    for name in ("auto", "gaussian", "prior"):
        assert name in result.stdout
    (out / "scores.png").unlink()
    again = pfbr_command("report", out)
    assert again.stdout.strip() == str(out / "scores.png")
    assert (out / "scores.png").exists()


def test_without_names_the_default_method_and_the_baselines_that_fit():
    static, moving = _fitting(GaussianMean(2)), _fitting(LinearDynamics.random(0, 2))
    assert static[0] == moving[0] == "auto"
    assert {"exact", "prior", "ibis"} <= set(static)
    assert {"exact", "smc", "enkf"} <= set(moving)
    assert "smc" not in static
    assert not {"aesmc-mlp", "aesmc-gru"} & {*static, *moving}  # they would have to be trained


def test_rows_with_inputs_are_compared(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,label\n1,0,1\n0,1,0\n1,1,1\n")
    words = ("compare", "logistic-regression:dim=2", tmp_path / "rows.csv", "--inputs", "a,b", "--methods", "prior")
    result = pfbr_command(*words, "--particles", 16, "--out", tmp_path / "runs", env=WIDE)
    assert result.exit_code == 0, result.output
    assert "prior" in result.stdout


def test_refusals(tmp_path, two_files):
    longer = tmp_path / "longer.csv"
    longer.write_text("0,0\n" * 4)
    out = ("--out", tmp_path / "runs")
    words = ("compare", SPEC, two_files[0], longer, "--methods", "enkf", *out)
    refused(pfbr_command(*words), "a.csv (3, 2), longer.csv (4, 2)")
    words = ("compare", SPEC, two_files[0], "--methods", "smc", *out)
    refused(pfbr_command(*words), "OnePassSMC")  # a method that cannot do the model, with one that can
    refused(pfbr_command("compare", SPEC, two_files[0], "--methods", "nobody", *out), "there is no method 'nobody'")
    refused(pfbr_command("compare", SPEC, two_files[0], "--methods", "prior", "--truth", "perhaps", *out), "truth")
    assert not (tmp_path / "runs").exists()
