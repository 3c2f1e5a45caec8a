"""`pfbr forecast`: the table that it prints and the files that it writes are what a session predicts."""

import csv
import json

import numpy as np
import pytest

import pfbr
from pfbr.cli.spec import resolve
from tests.cli.commands import pfbr_command, refused, written
from tests.cli.test_infer import DRIFT, FILTER, SMALL

TRACK = "when,y,push\n2024-05-02,0.4,0.1\n2024-05-03,,0.1\n2024-05-05,1.2,0.3\n"
DATES = ("--time", "when", "--inputs", "push", "--start", "2024-05-01", "--time-unit", "D")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forecast")
    track = written(folder / "track.csv", TRACK)
    ahead = written(folder / "ahead.csv", "push,when\n0.5,2024-05-06\n-1,2024-05-09T12:00\n")
    return f"{written(folder / 'drift.py', DRIFT)}:model", track, ahead


@pytest.fixture(scope="module")
def expected(files):
    times = ["2024-05-02", "2024-05-03", "2024-05-05"]
    inputs, stream = {"push": np.array([0.1, 0.1, 0.3])}, np.array([[0.4], [np.nan], [1.2]])
    clock = {"start": "2024-05-01", "time_unit": "D"}
    trace = pfbr.run(resolve(files[0]), stream, times=times, inputs=inputs, **clock, **SMALL)
    ahead = {"push": np.array([0.5, -1.0])}
    return trace.session.predict(times=["2024-05-06", "2024-05-09T12:00"], inputs=ahead)


def test_the_table_is_what_a_session_predicts(files, expected):
    model, track, ahead = files
    told = pfbr_command("forecast", model, track, "--ahead", ahead, "--scores", *DATES, *FILTER)
    assert told.exit_code == 0, told.output
    rows = list(csv.DictReader(told.stdout.splitlines()))
    assert [(row["step"], row["of"], row["name"]) for row in rows] == [
        ("1", "state", "x[0]"),
        ("2", "state", "x[0]"),
        ("1", "observation", "y[0]"),
        ("2", "observation", "y[0]"),
    ]
    assert rows[1]["time"].startswith("2024-05-09T12:00")
    np.testing.assert_allclose([float(row["mean"]) for row in rows[:2]], expected.states.mean()[:, 0], rtol=1e-5)
    low = expected.observations.quantile(0.05)[:, 0]
    np.testing.assert_allclose([float(row["q0.05"]) for row in rows[2:]], low, rtol=1e-5)
    assert "coverage_90" in told.stderr
    assert "crps" in told.stderr


def test_files_hold_the_same(files, expected, tmp_path):
    model, track, ahead = files
    for name in ("next.json", "next.npz", "next.csv"):
        given = ("--ahead", ahead, "--out", tmp_path / name, "--quantiles", "0.1,0.9")
        assert pfbr_command("forecast", model, track, *given, *DATES, *FILTER).exit_code == 0
    told = json.loads((tmp_path / "next.json").read_text())
    np.testing.assert_allclose(told["observation"]["mean"], expected.observations.mean(), rtol=1e-6)
    with np.load(tmp_path / "next.npz") as held:
        np.testing.assert_array_equal(held["state.samples"], expected.states.samples)
        np.testing.assert_allclose(held["observation.quantile"], expected.observations.quantile([0.1, 0.9]))
    assert (tmp_path / "next.csv").read_text().startswith("step,time,of,name,mean,std,q0.1,q0.9\n1,2024-05-06")


def test_what_cannot_be_forecast_is_refused(files, tmp_path):
    model, track, _ = files
    refused(pfbr_command("forecast", model, track, *DATES), "--horizon", "--ahead")
    refused(pfbr_command("forecast", model, track, "--horizon", 2, *DATES, *FILTER), "names `inputs`", "2 steps")
    refused(pfbr_command("forecast", model, track, "--horizon", 2, "--out", tmp_path / "a.txt"), ".csv, .json, .npz")
    refused(pfbr_command("forecast", model, track, "--horizon", 2, "--quantiles", "5"), "--quantiles")
    assert list(tmp_path.iterdir()) == []
