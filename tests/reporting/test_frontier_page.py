"""Who is on the frontier, by how much another wins, and a page that says both."""

import pytest

from pfbr.errors import FileError
from pfbr.io.records import Measurement, Records
from pfbr.judging.frontier.measure import ERROR, MILLISECONDS, TRUTH, WORST
from pfbr.reporting.frontier_page import Point, finding, frontier_page, staircase


def point(method, particles, milliseconds, error):
    return Point(method, particles, milliseconds, error, 0.0, error)


def test_the_staircase_is_the_best_within_each_time():
    points = [point("auto", 64, 1.0, 0.3), point("smc", 64, 0.1, 0.5), point("smc", 256, 2.0, 0.4)]
    assert staircase(points) == [(0.1, 0.5), (1.0, 0.3), (2.0, 0.3)]


def test_a_rival_that_wins_is_named_with_its_factor():
    points = [point("auto", 256, 0.4, 0.2), point("smc", 1024, 0.6, 0.1), point("smc", 64, 0.1, 0.01)]
    said = finding("volatility", points[:2])
    assert said.good is False
    assert "bootstrap SMC wins by a factor of 2.00 at 0.6 ms" in said.text


def test_ours_on_the_frontier_says_how_close_another_comes():
    said = finding("volatility", [point("auto", 256, 0.4, 0.1), point("smc", 1024, 0.6, 0.2)])
    assert said.good is True
    assert "0.1 against 0.2 of bootstrap SMC" in said.text


def test_a_rival_that_is_lost_wins_nothing():
    said = finding("volatility", [point("auto", 256, 0.4, 0.1), point("enkf", 64, 0.1, float("inf"))])
    assert said.good is None


def test_a_page_from_records(tmp_path):
    records = Records(tmp_path, {"seed": 7000, "streams": 2})
    with pytest.raises(FileError, match="nothing to draw"):
        frontier_page(tmp_path)
    rows = [("auto", 64, 0.5, 0.1), ("auto", 256, 1.0, 0.05), ("smc", 64, 0.1, 0.4), ("enkf", 64, 0.2, float("inf"))]
    records.add([Measurement("truth", f"{TRUTH}: volatility", None, 0.01)])
    for method, particles, milliseconds, error in rows:
        values = {ERROR: error, WORST: 2 * error, MILLISECONDS: milliseconds}
        records.add(Measurement(method, f"{w}: volatility", None, v, None, particles) for w, v in values.items())
    text = frontier_page(tmp_path).read_text()
    assert "ours is on the frontier" in text
    assert "lost" in text
    assert (tmp_path / "frontier.png").stat().st_size > 10_000
