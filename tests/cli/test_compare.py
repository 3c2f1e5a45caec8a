"""`pfbr compare` runs methods on files of observations, shows a table, and refuses what it cannot do."""

import numpy as np
import pytest

from pfbr.cli.compare import _fitting
from pfbr.io.records import Records
from pfbr.judging.compare import Row
from pfbr.models import GaussianMean, LinearDynamics
from tests.cli.commands import pfbr_command, refused

SPEC = "gaussian-mean:dim=2,observation_std=1"
WIDE = {"COLUMNS": "160"}


@pytest.fixture
def two_files(tmp_path):
    for seed, name in enumerate(("a.csv", "b.csv")):
        np.savetxt(tmp_path / name, np.random.default_rng(seed).normal(size=(3, 2)), delimiter=",")
    return tmp_path / "a.csv", tmp_path / "b.csv"


def test_a_table_records_and_a_figure_that_can_be_drawn_again(tmp_path, two_files):
    """Our own methods and baselines by one option."""
    out = tmp_path / "runs"
    words = ("compare", SPEC, *two_files, "--methods", "gaussian, prior", "--particles", 32, "--out", out)
    result = pfbr_command(*words, env=WIDE)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if "gaussian" in line or "prior" in line]
    assert "gaussian" in lines[0]  # best first
    assert (out / "scores.png").stat().st_size > 1000
    measured = Records(out).measurements()
    assert {m.method for m in measured} == {"gaussian", "prior"}
    assert {m.num_sequences for m in measured} == {2}
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


def test_times_inputs_and_options_are_handed_on(tmp_path, monkeypatch):
    asked = {}

    def stand_in(model, observations, methods, **options):
        asked.update(options, observations=observations, methods=methods)
        return [Row("prior", None, None, 1.0, 0.001, 0.0, 1024.0)]

    monkeypatch.setattr("pfbr.judging.compare.compare", stand_in)
    monkeypatch.setattr("pfbr.reporting.comparison_figure.comparison_figure", lambda out: out / "scores.png")
    for name, label in (("a.csv", 1), ("b.csv", 0)):
        (tmp_path / name).write_text(f"t,a,b,label\n1,1,0,{label}\n3,0,1,NA\n")
    words = ("compare", "logistic-regression:dim=2", tmp_path / "a.csv", tmp_path / "b.csv", "--methods", "auto,x.pfbr")
    options = ("--time", "t", "--inputs", "a,b", "--start", 1, "--seed", 4, "--history", 7, "--particles", 16)
    result = pfbr_command(*words, *options, "--out", tmp_path / "runs", env=WIDE)
    assert result.exit_code == 0, result.output
    assert "unknown" in result.stdout
    assert asked["methods"] == {"auto": "auto", "x": "x.pfbr"}
    assert asked["times"] == [[1.0, 3.0], [1.0, 3.0]]
    np.testing.assert_array_equal(asked["inputs"], [[[1, 0], [0, 1]]] * 2)
    np.testing.assert_array_equal(asked["observations"], [[[1], [np.nan]], [[0], [np.nan]]])
    assert (asked["start"], asked["key"], asked["history"], asked["num_particles"]) == (1.0, 4, 7, 16)


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
