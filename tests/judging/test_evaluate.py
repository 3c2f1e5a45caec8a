"""Records survive a kill; an evaluation can be taken up again and says what it measured."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest

from pfbr.baselines import EnKF, Exact, Prior
from pfbr.errors import FileError, InputError
from pfbr.io.records import Measurement, Records
from pfbr.judging import evaluate as evaluation
from pfbr.judging.compare import compare
from pfbr.models import GaussianMean, LogisticRegression
from pfbr.models.simulate import simulate
from pfbr.reporting.comparison_figure import comparison_figure

MODEL, N = GaussianMean(2, observation_std=1.0), 64
LINES = [
    Measurement("a", "m", 1, 1.5, 0.1, 4, 2, 0),
    Measurement("a", "m", None, math.inf),
    Measurement("b", "n", 2, -1.0),
]


@pytest.fixture(scope="module")
def streams():
    return jax.vmap(lambda k: simulate(k, MODEL, 4).observations)(jax.random.split(jax.random.key(0), 8))


def test_records_come_back_as_they_went(tmp_path):
    records = Records(tmp_path / "run", {"seed": 0})
    records.add(LINES[:2])
    records.add(LINES[2:])
    assert Records(tmp_path / "run", {"seed": 0}).measurements() == LINES
    assert records.settings == {"seed": 0}


def test_not_a_number_is_json_all_the_same(tmp_path):
    records = Records(tmp_path)
    records.add([Measurement("a", "m", 1, math.nan)])
    line = (tmp_path / "measurements.jsonl").read_text()
    json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert math.isnan(records.measurements()[0].value)


def test_of_two_measurements_of_one_thing_the_later_counts(tmp_path):
    records = Records(tmp_path)
    records.add(LINES)
    again = dataclasses.replace(LINES[0], value=2.5)
    records.add([again])
    assert records.measurements() == [again, *LINES[1:]]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_line_is_dropped_and_the_next_one_is_whole(tmp_path, cut):
    records = Records(tmp_path)
    records.add(LINES)
    path = tmp_path / "measurements.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    again = Records(tmp_path)
    assert again.measurements() == LINES[:2]
    again.add([LINES[2]])
    assert again.measurements() == LINES


def test_other_settings_in_the_same_place_are_refused(tmp_path):
    Records(tmp_path, {"seed": 0, "n": 1})
    with pytest.raises(FileError, match="seed"):
        Records(tmp_path, {"seed": 1, "n": 1})
    (tmp_path / "measurements.jsonl").write_text("{}\n")
    with pytest.raises(FileError, match="no measurement"):
        Records(tmp_path).measurements()


class Counting(EnKF):
    """The ensemble filter, which counts how often it is asked to start."""

    def init(self, key, model, num_particles):
        Counting.starts.append(num_particles)  # type: ignore[attr-defined]
        return super().init(key, model, num_particles)


Counting.starts = []  # type: ignore[attr-defined]


def test_evaluation_measures_distance_above_exact_and_goes_on_where_it_stopped(tmp_path, streams):
    """Exact draws of another seed are 0 above exact within z = 5 of their error; the prior is far above."""
    truth = evaluation.reference(jax.random.key(1), MODEL, streams, N, 500)
    records = Records(tmp_path)
    seen = []
    settings = {"num_particles": N, "truth": truth, "seed": 3, "records": records}
    methods = {"exact": Exact(), "never": Prior()}
    first = evaluation.evaluate(
        jax.random.key(2), methods, MODEL, streams, progress=lambda *what: seen.append(what), **settings
    )
    assert [what[0] for what in seen] == ["exact", "never", "done"]
    above = {name: [m for m in first if m.method == name and m.metric == evaluation.ABOVE] for name in methods}
    assert [m.stage for m in above["exact"]] == [1, 2, 3, 4, None]
    assert above["exact"][-1].value == pytest.approx(np.mean([m.value for m in above["exact"][:-1]]), abs=1e-6)
    assert all(abs(m.value) < 5 * m.error for m in above["exact"])
    assert all(m.value > 0.3 for m in above["never"])
    cost = {m.metric: m.value for m in first if m.method == "exact" and m.stage is None}
    assert 0 < cost[evaluation.SECONDS] < 1
    assert cost[evaluation.MEMORY] > N * 2 * 4  # at least the particles themselves
    assert records.measurements() == first

    again = evaluation.evaluate(jax.random.key(2), {"exact": Counting()}, MODEL, streams, **settings)
    assert Counting.starts == []  # type: ignore[attr-defined]
    assert again == [m for m in first if m.method in ("exact", "never")]


def test_the_exact_predictive_score_is_the_evidence(streams):
    """−log p(next | past) has a closed form here; 2048 exact draws are within 0.05 of it on average."""
    measured = evaluation.evaluate(
        jax.random.key(4), {"exact": Exact()}, MODEL, streams, num_particles=2048, truth=None
    )
    values = [m.value for m in measured if m.metric == evaluation.PREDICTIVE and m.stage is not None]
    x = np.asarray(streams)
    for m, value in enumerate(values, start=1):
        mean, var = x[:, :m].sum(1) / (m + 1), 1 + 1 / (m + 1)
        exact = 0.5 * ((x[:, m] - mean) ** 2).sum(-1) / var + np.log(2 * np.pi * var)
        assert abs(value - exact.mean()) < 0.05
    assert not [m for m in measured if m.metric == evaluation.ABOVE]


def test_comparison_writes_records_rows_and_a_figure(tmp_path, streams):
    out = tmp_path / "runs"
    rows = compare(MODEL, streams, ["enkf", "prior"], N, out, own={"mine": Exact()}, truth_draws=500)
    assert rows[-1].method == "prior"
    assert {row.method for row in rows} == {"mine", "enkf", "prior"}
    assert all(row.above_exact is not None and row.seconds_of_training == 0 for row in rows)
    assert comparison_figure(out).read_bytes().startswith(b"\x89PNG")
    lines = Records(out).measurements()
    again = compare(MODEL, streams, ["enkf", "prior"], N, out, own={"mine": Exact()}, truth_draws=500)
    assert Records(out).measurements() == lines
    assert [dataclasses.asdict(row) for row in again] == [dataclasses.asdict(row) for row in rows]


def test_comparison_refuses_before_it_runs(tmp_path, streams):
    with pytest.raises(InputError, match="smc cannot do"):
        compare(MODEL, streams, ["enkf", "smc"], N, tmp_path / "a")
    with pytest.raises(InputError, match="there is no method"):
        compare(MODEL, streams, ["particle-filter"], N, tmp_path / "b")
    with pytest.raises(InputError, match="truth"):
        compare(MODEL, streams, ["enkf"], N, tmp_path / "c", truth="mcmc")
    assert not list(tmp_path.iterdir())


def test_a_model_without_a_formula_has_no_reference():
    model = LogisticRegression(3)
    assert evaluation.reference(jax.random.key(0), model, np.zeros((1, 2, 4)), 8) is None
