"""`pfbr demo`: its tables, and the path of its page."""

import functools

import pytest

import pfbr
from pfbr.judging.demo import regression, tracking, two_modes
from pfbr.judging.demo.record import DemoRecord
from tests.cli.commands import pfbr_command
from tests.reporting.test_demo_scenes import line_record, ship_record


def shown(tmp_path) -> None:
    result = pfbr_command("demo", "--out", tmp_path / "page", env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    for words in (
        "exact draws",
        "pfbr",
        "one-pass SMC",
        "prior",
        "near (1, -2)",
        "near (-1, 2)",
        "ms",
        "IBIS",
        "beacons",
    ):
        assert words in result.stdout
    page = tmp_path / "page" / "index.html"
    assert result.stdout.strip().endswith(str(page))
    assert page.stat().st_size < 3_000_000


def test_it_prints_its_tables_and_ends_with_the_path_of_the_page(tmp_path, monkeypatch, demo_settings, demo_directory):
    """With the operator that the demonstration of the other tests was compiled for, and records of the other scenes."""
    run = two_modes.run

    def with_another(method, **options) -> DemoRecord:
        assert method == "auto"
        return run(pfbr.gaussian_operator(), settings=demo_settings, **options)

    monkeypatch.setattr(two_modes, "run", with_another)
    monkeypatch.setattr(regression, "run", lambda **options: line_record(0.07))
    monkeypatch.setattr(tracking, "run", lambda **options: ship_record(0.1))
    shown(tmp_path)


@pytest.mark.slow
def test_it_demonstrates_the_default_method(tmp_path, monkeypatch, demo_settings):
    """On streams shorter than the real ones."""
    short = {
        two_modes: demo_settings,
        regression: regression.RegressionSettings(years=(1980, 1990), num_particles=64),
        tracking: tracking.TrackingSettings(num_reports=8, num_particles=64, truth_particles=4096, most_particles=512),
    }
    for scene, settings in short.items():
        monkeypatch.setattr(scene, "run", functools.partial(scene.run, settings=settings))
    shown(tmp_path)
