"""The table of a live session has the rows it says, each of a kind that was seen."""

import numpy as np

from pfbr.judging import bench_sessions
from pfbr.judging.bench_sessions import Streamed, session_timings
from pfbr.models.base import StateSpaceModel


def test_streams_are_the_same_every_time_and_fit_their_models():
    first, again = list(bench_sessions.streams()), list(bench_sessions.streams())
    for one, other in zip(first, again, strict=True):
        assert one.name == other.name
        assert len(one.observations) == bench_sessions.ROWS
        np.testing.assert_array_equal(one.observations, other.observations)
        assert (one.inputs is None) == isinstance(one.model, StateSpaceModel)


def test_a_median_is_that_of_its_kind_once_a_stream_has_settled():
    late = bench_sessions.SETTLED
    seconds = np.concatenate([np.full(late, 100.0), [1.0, 2.0, 3.0, 50.0]])
    moves = np.array(["weighed"] * (late + 3) + ["flow"])
    told = Streamed(seconds, moves)
    assert told.median("weighed") == 2.0
    assert told.median("flow", "tempered") == 50.0


def test_every_line_has_a_time_and_groups_begin_with_what_others_are_compared_with(monkeypatch):
    monkeypatch.setattr(bench_sessions, "ROWS", 30)
    monkeypatch.setattr(bench_sessions, "SETTLED", 5)
    chosen = [one for one in bench_sessions.streams() if one.name in ("linear dynamics, d = 2",)]
    monkeypatch.setattr(bench_sessions, "streams", lambda: iter(chosen))
    lines = list(session_timings())
    assert all(line.seconds > 0 for line in lines)
    groups = list(dict.fromkeys(line.group for line in lines))
    assert [next(line.name for line in lines if line.group == group) for group in groups] == [
        "a compiled call that adds one to 256 numbers",
        "linear dynamics, d = 2",
        "independent normals",
    ]
    assert "linear dynamics, d = 2: moved" in [line.name for line in lines]
