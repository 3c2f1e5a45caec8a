"""Charts as files: the same records give the same bytes, whatever is infinite in them."""

import math

from pfbr.reporting.figures import draw_figure
from pfbr.reporting.parts import Chart, Series

LINE = Series("pfbr", [1, 2, 3], [0.1, math.inf, 30.0], [0.01, math.nan, 1.0])
SPOTS = Series("smc", [1, 1e6], [2, 1], tags=["a", "b"])
CHARTS = [
    Chart("bent", "x", "y", [LINE], y_scale="symlog", linear_to=0.5, zero="exact"),
    Chart("log", "x", "y", [LINE], x_scale="log", y_scale="log", y_limits=(0.1, 100.0)),
    Chart("spots", "x", "y", [SPOTS], x_scale="log", points=True, frontier=[(1, 2), (9, 1)]),
]


def test_the_same_charts_give_the_same_files(tmp_path):
    (tmp_path / "again").mkdir()
    first = draw_figure(tmp_path, "scores", CHARTS)
    second = draw_figure(tmp_path / "again", "scores", CHARTS)
    assert [path.name for path in first] == ["scores.svg", "scores.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[1].read_bytes().startswith(b"\x89PNG")
