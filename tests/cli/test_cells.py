"""Numbers, gaps and times in text: what is none of them is refused, with its place."""

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfbr.cli import cells
from pfbr.errors import InputError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_a_number_is_read_as_it_was_written(value):
    assert cells.number(repr(value), "here") == value


@pytest.mark.parametrize("text", ["1", "+1", "-1.5", ".5", "5.", "1e3", "1E-3", "0"])
def test_the_usual_ways_to_write_numbers(text):
    assert cells.number_or_gap(text, "here") == float(text)


@pytest.mark.parametrize(
    "text", ["1_000", "0x1F", "1,5", "inf", "-Infinity", "1e", "e5", "--1", "１２", "1 2", "1e400", "9" * 5000, "x"]
)
def test_what_is_no_number_is_refused_with_its_place(text):
    with pytest.raises(InputError) as refusal:
        cells.number_or_gap(text, "line 3, column 2")
    assert str(refusal.value).startswith("line 3, column 2: ")
    assert len(str(refusal.value)) < 150


@pytest.mark.parametrize("text", ["", "NA", "NaN", "nan", "null", "Null"])
def test_gaps(text):
    assert math.isnan(cells.number_or_gap(text, "here"))
    with pytest.raises(InputError, match="is not a number"):
        cells.number(text, "here")


def test_times_are_numbers_or_dates():
    assert cells.time("3.5", "here") == cells.time(3.5, "here") == 3.5
    assert cells.time(" 2024-05-01 ", "here") == datetime.datetime(2024, 5, 1)
    assert cells.time("2024-05-01T12:00Z", "here") == datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize("value", ["", "NA", "noon", "2024-13-01", "1_0", True, None, [1], math.nan, math.inf, {}])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(InputError, match=r"^here: .*is no time"):
        cells.time(value, "here")


@given(st.text())
def test_any_cell_is_read_or_refused_on_purpose(text):
    try:
        value = cells.number_or_gap(text, "here")
    except InputError:
        return
    assert not math.isinf(value)
