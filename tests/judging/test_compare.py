"""A comparison writes records and rows, goes on where it stopped, and refuses before it runs."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from pfbr.baselines import Exact
from pfbr.errors import InputError
from pfbr.io.records import Records
from pfbr.judging.compare import compare
from pfbr.models import GaussianMean
from pfbr.reporting.comparison_figure import comparison_figure
from tests.judging.drifting import Drifting

N = 64
METHODS = {"mine": Exact(), "prior": "prior"}


def test_comparison_writes_records_rows_and_a_figure_and_goes_on(tmp_path, gaussian_mean, streams):
    out = tmp_path / "runs"
    settings = {"num_particles": N, "out": out, "truth_draws": 500}
    rows = compare(gaussian_mean, streams, METHODS, **settings)
    assert [row.method for row in rows] == ["mine", "prior"]  # best first
    assert all(row.above_exact is not None and row.seconds_of_training == 0 for row in rows)
    assert comparison_figure(out).read_bytes().startswith(b"\x89PNG")
    lines = Records(out).measurements()
    again = compare(gaussian_mean, streams, METHODS, **settings)
    assert Records(out).measurements() == lines
    assert [dataclasses.asdict(row) for row in again] == [dataclasses.asdict(row) for row in rows]


def test_times_inputs_and_gaps_come_with_the_observations(irregular):
    """Nothing is written; the unknown is moved by the inputs alone, and Kalman's draws know that."""
    drawn, observations = irregular
    with pytest.raises(InputError, match="names `inputs`"):
        compare(Drifting(), observations, ["exact"])
    given = {"times": np.cumsum(drawn.dt, axis=1), "inputs": np.asarray(drawn.inputs)}
    (row,) = compare(Drifting(), observations, ["exact"], **given, num_particles=N, truth_draws=500)
    assert abs(row.above_exact) < 5 * row.above_exact_error


def test_comparison_refuses_before_it_runs(tmp_path, gaussian_mean, streams):
    for methods, settings, words in [
        (["enkf", "smc"], {}, "'smc' cannot do|smc cannot do"),
        (["particle-filter"], {}, "there is no method"),
        ([], {}, "no method"),
        (["enkf"], {"truth": "mcmc"}, "truth"),
    ]:
        with pytest.raises(InputError, match=words):
            compare(gaussian_mean, streams, methods, num_particles=N, out=tmp_path / "a", **settings)
    gap = np.zeros((2, 3, 1))
    gap[0, 0] = np.nan
    with pytest.raises(InputError, match="without times"):
        compare(NoFormula(1), gap, ["prior"], num_particles=N, truth="nuts")
    assert not list(tmp_path.iterdir())


class NoFormula(GaussianMean):
    """No formula is told of it."""

    def linear_gaussian(self):
        return None


def test_frames_have_the_streams_of_arrays(gaussian_mean, streams):
    many = np.asarray(streams)
    count, length, width = many.shape
    frame = pd.DataFrame(many.reshape(-1, width), columns=[f"y{i}" for i in range(width)])
    frame["s"], frame["t"] = np.repeat(np.arange(count), length), np.tile(np.arange(length), count)
    mixed = frame.sample(frac=1.0, random_state=0)
    mixed = mixed.sort_values("s", kind="stable")  # streams have their numbers as they appear
    settings = {"methods": ["prior"], "num_particles": 16, "truth": "none"}
    expected = compare(gaussian_mean, many, **settings)
    names = {"by": "s", "time": "t", "observation": [f"y{i}" for i in range(width)]}
    found = compare(gaussian_mean, mixed, start="first", **names, **settings)
    assert found[0].predictive == pytest.approx(expected[0].predictive, rel=1e-6)
    with pytest.raises(InputError, match="equally long"):
        compare(gaussian_mean, mixed[1:], **names, **settings)
