"""A restored panel goes on bit for bit, with all ids; rows that have not come take no room."""

import numpy as np
import pytest

import pfbr
from pfbr.errors import FileError, InputError
from pfbr.models import GaussianMean, LinearDynamics
from tests.inference.panel.test_panel import SYSTEM, Drift, panel_of

MODEL = GaussianMean(2, observation_std=1.0)
ROWS = np.random.default_rng(3).normal(size=(4, 3, 2))


def test_it_goes_on_bit_for_bit(tmp_path):
    panel = panel_of(SYSTEM, method="gaussian")
    ids = ["a", 7, ("x", 2)]
    for row in ROWS[:2]:
        panel.update(row, ids)
    panel.remove(7)
    panel.save(tmp_path / "panel.pfbr")
    restored = pfbr.Panel.restore(tmp_path / "panel.pfbr", SYSTEM)
    assert restored.streams == panel.streams == ["a", ("x", 2)]
    for row in ROWS[2:]:  # one begins again, under a new number
        a, b = panel.update(row, ids), restored.update(row, ids)
        np.testing.assert_array_equal(a.particles, b.particles)
        assert a.status.tolist() == b.status.tolist()
    assert restored.to_bytes() == panel.to_bytes()
    assert restored.share_moved == panel.share_moved
    assert repr(restored) == repr(panel)


def test_times_are_remembered():
    panel = panel_of(Drift(), method="smc", start=None, time_unit="D")
    push = {"push": [0.0, 0.0]}
    panel.update([[0.1], [0.2]], ["a", "b"], time=["2024-03-01", "2024-03-05"], inputs=push)
    restored = pfbr.Panel.from_bytes(panel.to_bytes(), Drift())
    for one in (panel, restored):
        said = one.update([[0.1], [0.2]], ["a", "b"], time="2024-03-04", inputs=push)
        assert said.status.tolist() == ["moved", "refused"]
    np.testing.assert_array_equal(panel.posterior("a").particles, restored.posterior("a").particles)


def test_an_empty_panel_and_rows_that_have_not_come_take_no_room():
    panel = panel_of(MODEL)
    assert len(pfbr.Panel.from_bytes(panel.to_bytes(), MODEL)) == 0
    panel.update(ROWS[0], ["a", "b", "c"])
    assert len(panel.to_bytes()) < 3 * 1200 + 8000  # rows alone would be 3 · 2.5 kB


def test_what_cannot_be_kept_or_read_is_refused():
    panel = panel_of(SYSTEM, method="gaussian")
    panel.update(ROWS[0], ["a", "b", frozenset({1})])
    with pytest.raises(InputError, match=r"an id cannot be kept in a file.*frozenset"):
        panel.to_bytes()
    panel.remove(frozenset({1}))
    data = panel.to_bytes()
    with pytest.raises(InputError, match="a LinearDynamics"):
        pfbr.Panel.from_bytes(data, LinearDynamics(0.5 * np.eye(2), np.eye(2)))
    with pytest.raises(FileError, match="pfbr-panel file, not a pfbr-session file"):
        pfbr.Session.from_bytes(data, SYSTEM)
    with pytest.raises(FileError, match="checksum"):
        pfbr.Panel.from_bytes(data[:-1], SYSTEM)
