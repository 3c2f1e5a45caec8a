"""The ladder: what is measured is kept, not measured twice, and ends where time is out."""

import numpy as np

from pfbr.io.records import Records
from pfbr.judging.frontier import measure
from pfbr.judging.frontier.measure import FrontierSettings, frontier


def test_a_ladder_is_kept_and_ends_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "LADDER", (32, 64))
    said: list[str] = []
    settings = FrontierSettings(streams=2)
    # IBIS cannot do a model that moves, and is passed over
    frontier(Records(tmp_path), ["linear-10"], ["gaussian", "smc", "ibis"], settings, said.append)
    found = {(m.method, m.metric, m.num_particles): m.value for m in Records(tmp_path).measurements()}
    errors = {key: value for key, value in found.items() if key[1] == "error: linear-10"}
    assert set(errors) == {(method, "error: linear-10", n) for method in ("gaussian", "smc") for n in (32, 64)}
    assert all(np.isfinite(list(errors.values())))
    assert errors["gaussian", "error: linear-10", 64] < 0.5 * errors["smc", "error: linear-10", 64]

    said.clear()
    frontier(Records(tmp_path), ["linear-10"], ["gaussian", "smc"], settings, said.append)
    assert [message for message in said if "particles" in message] == []

    said.clear()
    frontier(Records(tmp_path / "hurried"), ["linear-10"], ["smc"], FrontierSettings(streams=2, most_milliseconds=1e-6))
    assert {m.num_particles for m in Records(tmp_path / "hurried").measurements()} == {None, 32}
