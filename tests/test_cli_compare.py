"""`pfbr compare` runs methods on a file of observations, shows a table, and refuses what it cannot do."""

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pfbr.cli.compare import compare
from pfbr.errors import InputError
from pfbr.io.records import Records


@pytest.fixture(scope="module")
def app():
    app = typer.Typer()
    app.command()(compare)
    return app


def test_a_table_records_and_a_figure(app, tmp_path):
    np.savetxt(tmp_path / "a.csv", np.random.default_rng(0).normal(size=(3, 2)), delimiter=",")
    np.savetxt(tmp_path / "b.csv", np.random.default_rng(1).normal(size=(3, 2)), delimiter=",")
    out = tmp_path / "runs"
    words = ["gaussian-mean:dim=2,observation_std=1", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    options = ["--methods", "enkf,never-learning", "--particles", "32", "--out", str(out)]
    result = CliRunner().invoke(app, words + options)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if "enkf" in line or "prior" in line]
    assert "enkf" in lines[0]  # best first
    assert (out / "scores.png").stat().st_size > 1000
    measured = Records(out).measurements()
    assert {m.method for m in measured} == {"enkf", "prior"}
    assert {m.num_sequences for m in measured} == {2}


def test_streams_of_different_lengths_are_refused(app, tmp_path):
    for name, length in (("a", 3), ("b", 4)):
        np.savetxt(tmp_path / f"{name}.csv", np.zeros((length, 2)), delimiter=",")
    words = ["gaussian-mean:dim=2", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(app, [*words, "--methods", "enkf"])
    assert isinstance(result.exception, InputError)
    assert "a.csv (3, 2), b.csv (4, 2)" in str(result.exception)


def test_a_method_that_cannot_do_the_model_is_refused_with_another(app, tmp_path):
    np.savetxt(tmp_path / "a.csv", np.zeros((3, 2)), delimiter=",")
    words = ["gaussian-mean:dim=2", str(tmp_path / "a.csv"), "--methods", "smc", "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, InputError)
    assert "OnePassSMC" in str(result.exception)
