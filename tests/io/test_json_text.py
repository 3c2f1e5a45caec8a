"""JSON from outside is read strictly, and refused in one line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfbr.errors import FileError
from pfbr.io import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_json_comes_back(value):
    assert json_text.parse(json.dumps(value), "this") == value
    assert json_text.parse(json.dumps(value).encode(), "this") == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_one_line(content):
    try:
        json_text.parse(content, "the/file")
    except FileError as error:
        said = str(error)
    else:
        return
    assert said.startswith("the/file")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"[" * 100_000, "deep"),
        (b"[" * 70 + b"]" * 70, "deeper than 64"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"NaN", "NaN is no number"),
        (b"9" * 5000, "no JSON"),
        (b'"\xff"', "no JSON"),
        (b"", "no JSON"),
    ],
)
def test_what_pfbr_never_writes_is_refused(content, word):
    with pytest.raises(FileError, match=word):
        json_text.parse(content, "this")


def test_a_table_is_asked_for(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": [1]}')
    assert json_text.read_table(path) == {"a": [1]}
    path.write_text("[1]")
    with pytest.raises(FileError, match=r"a\.json must hold a table"):
        json_text.read_table(path)


def test_sizes_are_bounded(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text('{"a": "' + "x" * 100 + '"}')
    monkeypatch.setattr(json_text, "LARGEST", 50)
    with pytest.raises(FileError, match="larger than any"):
        json_text.read_table(path)
    with pytest.raises(FileError, match="no file"):
        json_text.read_bytes(tmp_path / "none", 10)
    with pytest.raises(FileError, match="cannot read"):
        json_text.read_bytes(tmp_path, 10)
    with pytest.raises(FileError, match="cannot read"):
        json_text.read_bytes("a\0b", 10)
