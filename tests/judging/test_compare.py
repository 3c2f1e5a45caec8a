"""A comparison writes records and rows, goes on where it stopped, and refuses before it runs."""

import dataclasses

import numpy as np
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
