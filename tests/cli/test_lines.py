"""One line of JSON: an observation with what came with it, or a refusal that names the line."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfbr.cli.lines import Columns, parse_line
from pfbr.errors import InputError

NAMED = Columns.of("t", "a, b", None)


def test_an_observation_as_a_number_a_list_or_in_an_object():
    for text in ("0.3", "[0.3]", '{"observation": 0.3}', '{"observation": [0.3], "sensor": "x"}'):
        np.testing.assert_array_equal(parse_line(text, (1,), "line 1").observation, [0.3])
    assert parse_line("0.3", (), "line 1").observation == 0.3
    assert parse_line("[3]", (), "line 1").observation.shape == ()


def test_null_and_nan_are_gaps():
    assert parse_line("null", (2,), "line 1").observation is None
    assert parse_line('{"observation": null, "time": 2}', (2,), "line 1").observation is None
    for text in ("[null, 1]", "[NaN, 1]"):
        np.testing.assert_array_equal(parse_line(text, (2,), "line 1").observation, [np.nan, 1])


def test_time_and_inputs():
    line = parse_line('{"observation": [1], "time": 3.5, "inputs": {"u": [1, 2], "v": {"w": 3}}}', (1,), "line 1")
    assert line.time == 3.5
    np.testing.assert_array_equal(line.inputs["u"], [1, 2])
    assert line.inputs["v"]["w"] == 3
    assert parse_line('{"observation": 1, "time": "2024-05-01"}', (1,), "line 1").time.year == 2024
    assert parse_line('{"observation": 1, "time": null, "inputs": null}', (1,), "line 1").time is None


def test_fields_by_name():
    line = parse_line('{"t": 2, "b": 20, "y": 1, "a": 10, "z": null}', (2,), "line 1", NAMED)
    assert line.time == 2
    np.testing.assert_array_equal(line.inputs, [10, 20])
    np.testing.assert_array_equal(line.observation, [1, np.nan])
    line = parse_line('{"u": {"v": 1}, "y": [1, 2], "other": "x"}', (2,), "line 1", Columns.of(None, "u", "y"))
    np.testing.assert_array_equal(line.observation, [1, 2])
    assert line.inputs["v"] == 1
    assert parse_line('{"t": 2, "a": 1, "b": 1, "y": null}', (1,), "line 1", NAMED).observation is None


def test_taking_back():
    last = parse_line('{"retract": null}', (1,), "line 1", NAMED)
    assert (last.retract, last.observation) == (True, None)
    line = parse_line('{"retract": [0.3], "inputs": [1]}', (1,), "line 1")
    assert line.retract
    np.testing.assert_array_equal(line.observation, [0.3])
    np.testing.assert_array_equal(line.inputs, [1])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[3, 4", "is not JSON"),
        ("1_000", "is not JSON"),
        ("0x1F", "is not JSON"),
        ("[3]", "must have shape (2,); got (1,)"),
        ("[3, Infinity]", "Infinity, which is too large for a number"),
        ("[3, 1e400]", "too large for a number"),
        (f"[3, {'9' * 5000}]", "too large for a number"),
        ("[[3], [4, 5]]", "is ragged"),
        ("[" * 5000 + "]" * 5000, "nested too deep"),
        ("[]", "must be a number or a list of numbers"),
        ('[1, "2"]', "must be a number or a list of numbers"),
        ("[true, 2]", "must be a number or a list of numbers"),
        ("{}", 'without the key "observation"; it has none'),
        ('{"value": 1}', 'without the key "observation"; it has value'),
        ('{"observation": [1, 2], "times": 3}', 'Did you mean "time"?'),
        ('{"observation": [1, 2], "input": 3}', 'Did you mean "inputs"?'),
        ('{"observation": [1, 2], "time": "noon"}', "is no time"),
        ('{"observation": [1, 2], "inputs": {"u": "x"}}', "must be a number or a list of numbers"),
    ],
)
def test_a_bad_line_is_refused(text, said):
    with pytest.raises(InputError) as refusal:
        parse_line(text, (2,), "line 7")
    assert str(refusal.value).startswith("line 7")
    assert said in str(refusal.value)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"T": 2, "a": 1, "b": 1, "y": 1}', "has no column 't'"),
        ('{"t": 2, "a": 1, "y": 1}', "has no column 'b'"),
        ('{"t": 2, "a": 1, "b": 2}', "no column left for the observation"),
        ('{"t": null, "a": 1, "b": 2, "y": 1}', "is no time"),
        ("[1, 2]", "must be an object"),
    ],
)
def test_fields_that_are_not_there_are_refused(text, said):
    with pytest.raises(InputError) as refusal:
        parse_line(text, (1,), "line 7", NAMED)
    assert said in str(refusal.value)


def test_a_column_holds_one_thing():
    with pytest.raises(InputError, match="'t' is named twice"):
        Columns.of("t", "a,t", None)
    assert not Columns.of(None, None, None).named
    assert Columns.of(None, " a ,,b ", "").inputs == ("a", "b")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["observation", "time", "inputs"]), inner)
    ),
    max_leaves=6,
)


@given(st.text() | JSON.map(json.dumps))
def test_any_line_is_read_or_refused_on_purpose(text):
    try:
        line = parse_line(text, (2,), "line 1")
    except InputError:
        return
    assert line.observation is None or (line.observation.shape == (2,) and not np.isinf(line.observation).any())
