"""A median of calls, the first of which is left out."""

from pfbr.judging import timing
from pfbr.judging.timing import seconds_of


def test_the_first_call_which_compiles_is_left_out_and_an_odd_one_does_not_count(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 12.0, 20.0, 90.0])  # calls of 1, 2 and 70 seconds
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    calls = []
    assert seconds_of(lambda: calls.append(1), repeats=3) == 2.0
    assert len(calls) == 4
