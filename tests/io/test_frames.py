"""Frames in and out: columns by name, gaps whatever they are called, and a refusal that names column and row."""

import datetime
import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pfbr.errors import FileError, InputError
from pfbr.io.frames import frame_like, is_frame, read_frame, read_parquet, write_columns

DATA = {"s": ["b", "a", "b"], "t": [1.5, 0.5, 2.0], "y": [1.0, None, 3.0], "z": [True, False, None], "u": [1, 2, 3]}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_read_by_name_from_every_library(kind):
    frame = KINDS[kind](DATA)
    assert is_frame(frame)
    table = read_frame(frame, by="s", time="t", observation=["z", "y"], inputs="u")
    np.testing.assert_array_equal(table.observations, [[1, 1], [0, np.nan], [np.nan, 3]])
    np.testing.assert_array_equal(table.inputs, [[1], [2], [3]])
    np.testing.assert_array_equal(table.times, [1.5, 0.5, 2.0])
    assert table.streams == ["b", "a", "b"]
    rest = read_frame(frame, by="s", time="t", inputs=["u"])
    np.testing.assert_array_equal(rest.observations, table.observations[:, ::-1])  # y and z, as they stand there
    back = frame_like(frame, ["s"], {"mean": np.arange(3.0)})
    assert type(back) is type(frame)
    assert list(back.columns if kind != "pyarrow" else back.column_names) == ["s", "mean"]


def test_what_is_no_frame():
    for value in (np.zeros(3), [1.0], pd.Series([1.0]), pl.Series([1.0]), DATA):
        assert not is_frame(value)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([1, pd.NA, 3], dtype="Int64"),
        pd.array([1.0, pd.NA, 3.0], dtype="Float64"),
        pd.array([1.0, None, 3.0], dtype="float64[pyarrow]"),
        [1.0, np.nan, 3.0],
        np.array([1, None, 3.0], dtype=object),
        np.array([decimal.Decimal(1), pd.NA, 3], dtype=object),
        np.array([1, float("nan"), 3.0], dtype=object),
    ],
)
def test_every_word_for_missing_is_a_gap(column):
    found = read_frame(pd.DataFrame({"y": column})).observations[:, 0]
    np.testing.assert_array_equal(found, [1, np.nan, 3])


def test_polars_tells_null_and_nan_apart_and_both_are_gaps():
    found = read_frame(pl.DataFrame({"y": [1.0, None, float("nan")], "k": [None, 2, 3]})).observations
    np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, 2], [np.nan, 3]])


def test_times_may_be_dates_of_any_kind():
    noon = datetime.datetime(2024, 5, 1, 12)
    plus_two = datetime.timezone(datetime.timedelta(hours=2))
    columns = [
        pd.Series([noon, noon]),
        pd.Series([noon.replace(tzinfo=datetime.UTC)] * 2),
        pd.Series([datetime.datetime(2024, 5, 1, 14, tzinfo=plus_two)] * 2),
        pd.Series(["2024-05-01T12:00"] * 2),
        pl.Series([noon, noon]),
        pl.Series([noon.replace(tzinfo=datetime.UTC)] * 2),
    ]
    for column in columns:
        kind = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
        table = read_frame(kind({"t": column, "y": [1.0, 2.0]}), time="t")
        np.testing.assert_array_equal(table.times, np.array([noon, noon], "datetime64[us]"))
    days = read_frame(pl.DataFrame({"t": [noon.date()], "y": [1.0]}), time="t")
    assert days.times[0] == np.datetime64("2024-05-01T00:00")


@pytest.mark.parametrize(
    ("columns", "names", "said"),
    [
        ({"y": [1.0, np.inf]}, {}, "column 'y', row 1: inf is not finite"),
        ({"y": [1.0, "x"]}, {}, "column 'y', row 1: 'x' is not a number"),
        ({"y": ["1.0", "2.0"]}, {}, "column 'y', row 0: '1.0' is not a number"),
        (
            {"y": [1.0, None], "u": [1.0, None]},
            {"inputs": "u"},
            "column 'u', row 1 is missing, and inputs have no gaps",
        ),
        ({"y": [1.0, 2.0], "t": [1.0, None]}, {"time": "t"}, "column 't', row 1: the time is missing"),
        ({"y": [1.0, 2.0], "t": ["2024-01-01", "noon"]}, {"time": "t"}, "column 't', row 1: 'noon' is no time"),
        ({"y": [1.0, 2.0], "s": ["a", None]}, {"by": "s"}, "column 's', row 1: the row belongs to no stream"),
        ({"times": [1.0], "y": [1.0]}, {"time": "time"}, "no column 'time'. Did you mean 'times'?"),
        ({"y": [1.0]}, {"time": "y", "observation": "y"}, "'y' is named twice"),
        ({"y": [1.0]}, {"time": "y"}, "no column is left for the observation"),
        ({"y": []}, {}, "no rows"),
        ({"y": [1.0]}, {"by": ["y"]}, "`by` and `time` name one column each"),
        ({"y": [1.0]}, {"inputs": [0]}, "names its columns"),
    ],
)
def test_what_cannot_be_used_is_named_with_column_and_row(columns, names, said):
    with pytest.raises(InputError) as refusal:
        read_frame(pd.DataFrame(columns), **names)
    assert said in str(refusal.value)


def test_rows_have_their_labels_and_lazy_frames_no_rows():
    with pytest.raises(InputError, match=r"row 1 \(index 'second'\)"):
        read_frame(pd.DataFrame({"y": [1.0, np.inf]}, index=["first", "second"]))
    with pytest.raises(InputError, match="collect"):
        read_frame(pl.DataFrame({"y": [1.0]}).lazy())


def test_an_index_stays_even_where_labels_repeat():
    frame = pd.DataFrame({"s": ["a", "b", "c"]}, index=pd.Index([7, 7, 9], name="id"))
    back = frame_like(frame, ["s"], {"mean": np.arange(3.0)})
    assert back.index.equals(frame.index)
    assert back["mean"].tolist() == [0, 1, 2]


def test_columns_are_written_and_read_back(tmp_path):
    columns = {"s": np.array(["a", "b"]), "mean": np.array([0.1, np.nan]), "flagged": np.array([True, False])}
    write_columns(tmp_path / "a.csv", columns)
    assert (tmp_path / "a.csv").read_text() == "s,mean,flagged\na,0.1,True\nb,,False\n"
    write_columns(tmp_path / "a.parquet", columns)
    back = read_parquet(tmp_path / "a.parquet")
    assert back["s"].to_pylist() == ["a", "b"]
    np.testing.assert_array_equal(back["mean"].to_numpy(), columns["mean"])
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(FileError, match="cannot be read as parquet"):
        read_parquet(tmp_path / "cut.parquet")


def test_the_extra_is_named_where_it_is_missing():
    script = (
        "import sys\n"
        "sys.modules['narwhals'] = sys.modules['pyarrow'] = None\n"
        "from pfbr.io import frames\n"
        "write = lambda: frames.write_columns('a.parquet', {})\n"
        "for call in (frames.narwhals, lambda: frames.read_parquet('a'), write):\n"
        "    try:\n        call()\n"
        "    except ValueError as error:\n        print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.count('pip install "pfbr[frames]"') == 3
