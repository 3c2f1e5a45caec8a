"""The scripts of the gallery in a short form: they run, find what they should, and stay short."""

import importlib
import sys

import numpy as np
import pytest

NAMES = ("assimilation", "counts", "digits", "experiment", "sensors", "tracking", "volatility")


@pytest.fixture
def script(root, monkeypatch):
    """A script by its name, as Python finds it when it is run from its folder."""
    monkeypatch.syspath_prepend(str(root / "examples"))
    yield importlib.import_module
    for name in (*NAMES, "common", "pictures"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_short_and_says_how_it_is_run(root, name):
    text = (root / f"examples/{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert f"python examples/{name}.py" in text
    assert (root / f"docs/gallery/{name}.md").exists()


def test_every_table_is_whole_and_has_a_source(root, script):
    table = script("common").table
    said = (root / "examples/data/README.md").read_text(encoding="utf-8")
    for path in sorted((root / "examples/data").glob("*.csv")):
        columns = table(path.stem)
        assert f"`{path.name}`" in said
        assert len({len(values) for values in columns.values()}) == 1
        assert all(np.all(np.isfinite(values.astype(float))) for values in columns.values())
    assert table("van_drivers")["killed"].mean() == pytest.approx(9.057, abs=1e-3)  # as R has it
    assert len(table("oil")["date"]) == 1256


@pytest.mark.slow
def test_volatility(script, tmp_path):
    found = script("volatility").main(days=40, burn_in=10, num_particles=64, picture=str(tmp_path / "p.png"))
    assert found["pfbr"]["share below"][1] < 0.35
    assert (tmp_path / "p.png").exists()


@pytest.mark.slow
def test_counts(script, tmp_path):
    found = script("counts").main(months=75, num_particles=64, picture=str(tmp_path / "p.png"))
    assert float(found["CRPS of pfbr"].split(";")[0]) < 3.0
    assert found["months in 90 % intervals"] > 0.7
    assert (tmp_path / "p.png").exists()


@pytest.mark.slow
def test_tracking(script, tmp_path):
    found = script("tracking").main(length=15.0, num_particles=64, picture=str(tmp_path / "p.gif"))
    assert float(found["auto, 64 particles"].split()[2].rstrip(",")) < 15.0
    assert (tmp_path / "p.gif").read_bytes()[:4] == b"GIF8"


@pytest.mark.slow
def test_experiment(script, tmp_path):
    found = script("experiment").main(most=400, picture=str(tmp_path / "p.png"))
    ours, exact = found["effect on the log odds"], found["effect by a Laplace approximation to all rows"]
    assert abs(ours[0] - exact[0]) < 0.5 * exact[1]
    assert found["stop after"] < 400


@pytest.mark.slow
def test_sensors(script, tmp_path):
    found = script("sensors").main(sensors=12, hours=170, picture=str(tmp_path / "p.png"))
    assert 0 <= found["hours until it is found"] < 24
    assert found["false alarms"] <= 1
    assert found["error of the offsets"] < 0.2


@pytest.mark.slow
def test_assimilation(script, tmp_path):
    found = script("assimilation").main(reports=80, picture=str(tmp_path / "p.png"))
    assert found["auto, 100 particles"] < 1.0 < found["error of the observations alone"]


@pytest.mark.slow
def test_digits(script, tmp_path):
    found = script("digits").main(batches=6, picture=str(tmp_path / "p.png"))
    assert float(found["learned over tasks"].split()[3].rstrip(",")) > 0.8
