"""Scenes say what their records say, also where a rival wins."""

import numpy as np
import pytest

from pfbr.judging.demo import regression, tracking
from pfbr.judging.demo.record import DemoRecord
from pfbr.reporting.demo_scenes import regression_scene, tracking_scene


def line_record(ours: float) -> DemoRecord:
    settings = regression.RegressionSettings(years=(1980, 2010))
    years, values = regression.rows(settings)
    mean, cov = regression.exact(years, values, settings.prior_stds)
    arrays = {"years": years, "values": values, "exact_error": np.full(30, 0.06)}
    for name, error in {"truth": 0.0, "pfbr": ours, "ibis": 3.0}.items():
        arrays |= {f"{name}_mean": mean, f"{name}_cov": cov, f"{name}_error": np.full(30, error)}
    return DemoRecord(regression.NAME, {"num_particles": 256, "cpu_seconds": {"pfbr": (0.2, 9.0)}}, arrays)


def test_a_regression_is_told_row_by_row():
    scene = regression_scene(line_record(0.07))
    assert [finding.good for finding in scene.findings] == [True, True, None]
    assert "Off by 0.07 posterior standard deviations over all 30 rows" in scene.findings[0].text
    line, _, table = scene.parts
    assert [key for (key,) in line.charts] == ["1 row", "5 rows", "20 rows", "30 rows"]
    assert len(line.charts["5 rows",].series[-1].x) == 5
    assert len(table.rows) == 12


def test_a_regression_that_went_wrong_is_told_too():
    assert [finding.good for finding in regression_scene(line_record(4.0)).findings] == [False, False, None]


def ship_record(ours: float) -> DemoRecord:
    arrays = {"states": np.zeros((5, 4))}
    for name, error in {"pfbr": ours, "smc": 0.5, "enkf": 0.7}.items():
        arrays |= {f"{name}_mean": np.zeros((5, 4)), f"{name}_error": np.full(5, error)}
    counts, seconds = {"pfbr": 256, "smc": 8192, "enkf": 2048}, {"pfbr": 2e-3, "smc": 1.9e-3, "enkf": 1.5e-3}
    settings = {"particles": counts, "seconds_per_report": seconds}
    return DemoRecord(tracking.NAME, settings, arrays)


@pytest.mark.parametrize("ours", [0.1, 0.9])
def test_the_best_tracker_is_set_bold_whoever_it_is(ours):
    scene = tracking_scene(ship_record(ours))
    assert scene.findings[0].good is (ours < 0.5)
    assert scene.parts[-1].best == {(0 if ours < 0.5 else 1, 4)}


def test_a_tracker_that_diverges_is_told_in_words():
    record = ship_record(0.9)
    record.arrays["enkf_error"] = np.array([0.5, 0.6, 9.0, np.nan, np.nan])
    scene = tracking_scene(record)
    assert "ensemble Kalman filter diverges at report 4 with 2,048 particles" in scene.findings[0].text
    assert scene.parts[-1].rows[2][3:] == ["–", "diverges at report 4", "–"]
    assert scene.parts[-1].best == {(1, 4)}


def test_what_is_far_off_does_not_squeeze_the_map():
    record = ship_record(0.2)
    record.arrays["enkf_mean"][2, :2] = 250.0, 40.0
    voyage = tracking_scene(record).parts[0].charts["",]
    drawn = {series.method: series for series in voyage.series}
    assert len(drawn["enkf"].x) == 4
    assert len(drawn["smc"].x) == 5
    assert max(x for series in voyage.series for x in series.x) < 150
