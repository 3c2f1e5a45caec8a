"""Draws in xarray and ArviZ, labelled by real times and by the ids of streams."""

import datetime

import numpy as np
import pandas as pd
import pytest

import pfbr
from pfbr.errors import InputError
from pfbr.models import GaussianMean

SMALL = {"method": "gaussian", "num_particles": 16}
MODEL = GaussianMean(2, 1.0, 1.0)
BEGIN = datetime.datetime(2024, 5, 1)
DATES = [BEGIN + datetime.timedelta(days=d) for d in (1, 2, 4)]


@pytest.fixture(scope="module")
def streams():
    """Two streams, of two and three rows, mixed."""
    frame = pd.DataFrame({"s": list("babba"), "t": [2.0, 1.0, 1.0, 5.0, 3.0], "u": np.arange(5.0), "v": 1.0})
    return pfbr.run(MODEL, frame, by="s", time="t", observation=["u", "v"], **SMALL)


def test_a_single_stream_has_its_times():
    trace = pfbr.run(MODEL, np.ones((3, 2)), times=DATES, start=BEGIN, time_unit="D", **SMALL)
    found = pfbr.to_xarray(trace)
    assert found["x"].dims == ("time", "draw", "x_dim_0")
    np.testing.assert_array_equal(found["time"], np.array(DATES, "datetime64[us]"))
    np.testing.assert_allclose(found["x"].sel(time="2024-05-03").mean("draw")[0], trace.mean()[1], rtol=1e-5)
    assert pfbr.to_arviz(trace)["posterior"]["time"].values[0] == np.datetime64(DATES[-1])
    zone = [d.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2))) for d in DATES]
    trace.times = zone
    assert pfbr.to_xarray(trace)["time"].values[0] == np.datetime64("2024-05-01T22:00")


def test_without_times_there_are_stages_and_many_have_numbers():
    trace = pfbr.run(MODEL, np.ones((2, 3, 2)), **SMALL)
    found = pfbr.to_xarray(trace, name="mean")
    assert found["mean"].dims == ("stream", "stage", "draw", "mean_dim_0")
    assert found["stage"].values.tolist() == [1, 2, 3]
    timed = pfbr.run(MODEL, np.ones((2, 3, 2)), times=[[1, 2, 3], [1, 1, 9]], **SMALL)
    assert pfbr.to_xarray(timed)["time"].sel(stream=1, stage=3) == 9
    assert pfbr.to_arviz(timed)["posterior"]["time"].values.tolist() == [3, 9]
    one = pfbr.run(MODEL, np.ones((3, 2)), **SMALL)
    assert pfbr.to_xarray(one)["x"].dims[0] == "stage"


def test_streams_of_a_frame_are_rows_and_chains_by_their_ids(streams):
    found = pfbr.to_xarray(streams)
    assert found["x"].dims[0] == "row"
    assert found["stream"].values.tolist() == list("babba")
    mine = found["x"].isel(row=(found["stream"] == "b").values)
    np.testing.assert_array_equal(mine.sortby("time"), streams["b"].samples)
    chains = pfbr.to_arviz(streams)
    assert chains["posterior"]["chain"].values.tolist() == ["b", "a"]
    assert chains["posterior"]["time"].values.tolist() == [5, 3]
    np.testing.assert_array_equal(chains["posterior"]["x"].sel(chain="a"), streams["a"].samples[-1])
    first = pfbr.to_arviz(streams, stage=0)
    assert first["posterior"]["time"].values.tolist() == [1, 1]
    with pytest.raises(InputError, match="'a' has 2 rows, and 2 was asked"):
        pfbr.to_arviz(streams, stage=2)


def test_what_is_no_trace_is_refused():
    with pytest.raises(InputError, match="expected a Trace"):
        pfbr.to_xarray([1.0])
