"""Tables on the command line: .csv and .parquet, streams by a column, a row back for each row."""

import csv

import numpy as np
import pandas as pd
import pytest

import pfbr
from pfbr.cli.spec import resolve
from tests.cli.commands import pfbr_command, refused, written
from tests.cli.test_infer import DRIFT

WORDS = ("--method", "gaussian", "--particles", 16)
SMALL = {"method": "gaussian", "num_particles": 16, "start": "first", "time_unit": "h"}
NAMES = ("--by", "sensor", "--time", "when", "--inputs", "push", "--start", "first", "--time-unit", "h")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    hours = [5, 1, 2, 2, 9]
    when = [pd.Timestamp("2024-05-01") + pd.Timedelta(hours=h) for h in hours]
    y = [0.5, 1.0, np.nan, 2.0, -1.0]
    return pd.DataFrame({"sensor": list("abaab"), "when": when, "y": y, "push": [1.0, 0.0, -1.0, 0.5, 0.2]})


@pytest.fixture(scope="module")
def place(tmp_path_factory, frame):
    folder = tmp_path_factory.mktemp("tables")
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    written(folder / "drift.py", DRIFT)
    return folder


@pytest.fixture(scope="module")
def expected(frame, place):
    names = {"by": "sensor", "time": "when", "observation": "y", "inputs": ["push"]}
    return pfbr.run(resolve(f"{place / 'drift.py'}:model"), frame, **names, **SMALL)


@pytest.mark.parametrize("source", ["rows.csv", "rows.parquet"])
def test_a_row_of_summaries_for_each_row_of_the_table(tmp_path, place, expected, source):
    answer = expected.to_frame()
    for out in ("out.csv", "out.parquet"):
        words = ("infer", f"{place / 'drift.py'}:model", place / source, *NAMES, *WORDS, "--out", tmp_path / out)
        result = pfbr_command(*words)
        assert result.exit_code == 0, result.output
        assert "5 rows of 2 streams" in result.stderr
        read = pd.read_csv(tmp_path / out) if out == "out.csv" else pd.read_parquet(tmp_path / out)
        assert list(read.columns) == list(answer.columns)
        assert read["sensor"].tolist() == list("abaab")
        np.testing.assert_array_equal(pd.to_datetime(read["when"]), answer["when"])
        np.testing.assert_allclose(read["mean.x[0]"], answer["mean.x[0]"], rtol=1e-6)


def test_all_particles_of_all_rows(tmp_path, place, expected):
    words = ("infer", f"{place / 'drift.py'}:model", place / "rows.csv", *NAMES, *WORDS, "--out", tmp_path / "out.npz")
    assert pfbr_command(*words).exit_code == 0
    with np.load(tmp_path / "out.npz") as held:
        np.testing.assert_allclose(held["particles"], expected.particles, rtol=1e-6)
        assert held["stream"].tolist() == list("abaab")


def test_one_stream_without_by_is_in_the_order_of_the_file(tmp_path, place):
    written(tmp_path / "plain.csv", "t,a,b\n2,1,1\n1,,\n3,0,2\n")
    words = ("infer", "gaussian-mean:dim=2,observation_std=1", tmp_path / "plain.csv", "--time", "t", *WORDS)
    assert pfbr_command(*words, "--out", tmp_path / "out.csv").exit_code == 0
    with (tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["t"] for row in rows] == ["2.0", "1.0", "3.0"]
    assert abs(float(rows[1]["mean.x[0]"])) < 1e-4  # nothing seen yet
    assert float(rows[0]["mean.x[0]"]) > 0.3


def test_bad_tables_are_refused_with_file_line_and_column(tmp_path, place, frame):
    model, out = f"{place / 'drift.py'}:model", tmp_path / "out.csv"

    def told(text, *said, names=NAMES, source="bad.csv"):
        path = written(tmp_path / source, text)
        refused(pfbr_command("infer", model, path, *names, *WORDS, "--out", out), *said)

    head = "sensor,when,y,push\n"
    told(head + "a,2024-05-01,1,0\n,2024-05-01,1,0\n", "bad.csv', line 3, column 1: the row belongs to no stream")
    told(head + "a,2024-05-01,x,0\n", "line 2, column 3: 'x' is not a number")
    told(head + "a,2024-05-01,1,0\nb,3,1,0\n", "line 3 has a number for a time")
    told("sensors,when,y,push\na,1,1,0\n", "no column 'sensor'. Did you mean 'sensors'?")
    frame.assign(push=[1.0, None, 0, 0, 0]).to_parquet(tmp_path / "bad.parquet")
    words = ("infer", model, tmp_path / "bad.parquet", *NAMES, *WORDS, "--out", out)
    refused(pfbr_command(*words), "bad.parquet'", "column 'push', row 1 is missing")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    refused(pfbr_command("infer", model, tmp_path / "cut.parquet", *NAMES, "--out", out), "cannot be read as parquet")
    np.save(tmp_path / "a.npy", np.zeros((3, 1)))
    refused(pfbr_command("infer", model, tmp_path / "a.npy", "--by", "s", "--out", out), "--by is for tables")
    refused(pfbr_command("infer", model, tmp_path / "a.npy", "--out", out), "is for tables")
    refused(
        pfbr_command("infer", model, place / "rows.csv", *NAMES, "--out", tmp_path / "out.txt"),
        "the output must be a .npz",
    )
    assert not out.exists()


def test_compare_takes_streams_by_a_column(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"s": list("abab"), "y0": rng.normal(size=4), "y1": rng.normal(size=4)})
    table.to_parquet(tmp_path / "even.parquet")
    spec, words = "gaussian-mean:dim=2,observation_std=1", ("--methods", "prior", "--particles", 16, "--truth", "none")
    result = pfbr_command("compare", spec, tmp_path / "even.parquet", "--by", "s", *words, "--out", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    assert '"num_sequences": 2' in (tmp_path / "runs" / "measurements.jsonl").read_text()
    table[:3].to_parquet(tmp_path / "odd.parquet")
    words = ("compare", spec, tmp_path / "odd.parquet", "--by", "s", *words, "--out", tmp_path / "more")
    refused(pfbr_command(*words), "streams must be equally long to be compared; 'b' has 1 rows and 'a' has 2")
