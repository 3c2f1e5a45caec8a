"""Differences of times keep every digit that the user gave."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfbr.errors import InputError
from pfbr.inference.clock import UNITS, Clock, elapsed_times


def test_epoch_seconds_keep_their_milliseconds():
    """float32 cannot tell these two apart; their difference it can."""
    now = 1.7e9
    np.testing.assert_allclose(elapsed_times([now + 0.001, now + 0.003], 2, Clock(now)), [0.001, 0.002], atol=1e-6)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8), st.sampled_from(sorted(UNITS)))
def test_dates_are_counted_in_the_unit_that_was_asked_for(steps, unit):
    start = datetime.datetime(2024, 2, 28, 23, 59)
    dates = [start + datetime.timedelta(seconds=int(s)) for s in np.cumsum(steps)]
    dt = elapsed_times(np.array(dates, "datetime64[us]"), len(steps), Clock(start, unit))
    np.testing.assert_allclose(dt * UNITS[unit], steps, rtol=1e-9, atol=1e-6)


def test_zones_and_strings_are_dates_too():
    clock = Clock("2024-01-01", "h")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert clock.elapsed(datetime.datetime(2024, 1, 1, 5, tzinfo=zone)) == 3.0
    assert clock.elapsed("2024-01-02T00:30") == 24.5
    assert clock.elapsed(datetime.date(2024, 1, 3)) == 48.0


WRONG = {
    "a date without a unit": (lambda: Clock("2024-01-01"), "time_unit"),
    "a unit that is none": (lambda: Clock(0.0, "fortnight"), "fortnight"),
    "a number after a date": (lambda: Clock("2024-01-01", "s").elapsed(3.0), "Give a date"),
    "a date after a number": (lambda: Clock(0.0, "s").elapsed("2024-01-01"), "give the session a date"),
    "no date": (lambda: Clock("soon", "s"), "no date"),
    "not a time": (lambda: Clock(np.datetime64("NaT"), "s"), "NaT"),
    "infinity": (lambda: Clock().elapsed(np.inf), "finite"),
    "a list": (lambda: Clock().elapsed([1.0, 2.0]), "number or a date"),
    "too few": (lambda: elapsed_times([1.0], 2, Clock()), "each of the 2"),
    "going back": (lambda: elapsed_times([1.0, 3.0, 2.0], 3, Clock()), "observation 3"),
    "before the start": (lambda: elapsed_times([1.0, 3.0], 2, Clock(2.0)), "observation 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_time_is_refused(name):
    do, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        do()
