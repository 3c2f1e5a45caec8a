"""Observations from files and lines: read as they are, or refused with the number of the line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pfbr.cli.observations import parse_line, read
from pfbr.errors import FileError, InputError
from pfbr.models import GaussianMean, GaussianMixture, MiniBatch

PLANE, ONE = GaussianMean(2), GaussianMixture()
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2).map(lambda s: (s[0], 2)), elements=FINITE))
def test_what_is_written_is_read_in_every_format(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("formats")
    np.save(folder / "a.npy", values)
    (folder / "a.csv").write_text("".join(f"{a!r},{b!r}\n" for a, b in values.tolist()))
    (folder / "a.jsonl").write_text("".join(f"{row!r}\n" for row in values.tolist()))
    for name in ("a.npy", "a.csv", "a.jsonl"):
        np.testing.assert_array_equal(read(folder / name, PLANE), values)


def test_a_header_blank_lines_and_objects_are_understood(tmp_path):
    (tmp_path / "a.csv").write_text("first,second\n1,2\n\n3,4\n")
    (tmp_path / "a.jsonl").write_text('{"observation": [1, 2], "time": 5}\n\n[3, 4]\n')
    for name in ("a.csv", "a.jsonl"):
        np.testing.assert_array_equal(read(tmp_path / name, PLANE), [[1, 2], [3, 4]])


def test_plain_numbers_serve_a_model_with_one_value(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "a.csv").write_text("0\n1\n2\n")
    (tmp_path / "a.jsonl").write_text("0\n1\n2\n")
    for name in ("a.npy", "a.csv", "a.jsonl"):
        np.testing.assert_array_equal(read(tmp_path / name, ONE), [[0], [1], [2]])


def test_many_streams_and_batches(tmp_path):
    np.save(tmp_path / "many.npy", np.zeros((5, 7, 2)))
    assert read(tmp_path / "many.npy", PLANE).shape == (5, 7, 2)
    assert read(tmp_path / "many.npy", MiniBatch(PLANE, 7)).shape == (5, 7, 2)  # one stream of five batches


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "1,2\n3\n", "line 2 has 1 columns, the rows above have 2. Cut short?"),
        ("a.csv", "1,2\n3,x\n", "line 2, column 2: 'x' is not a number"),
        ("a.csv", "1,2\n3,nan\n", "line 2 holds nan"),
        ("a.csv", "1,2\n3,\n", "line 2, column 2: '' is not a number"),
        ("a.csv", "", "holds no observations"),
        ("a.csv", "a,b\n", "holds no observations"),
        ("a.csv", "1,2,3\n", "needs (T, 2)"),
        ("a.jsonl", "[1, 2]\n[3, 4", "line 2 is not JSON"),
        ("a.jsonl", "[1, 2]\n[3]\n", "line 2 must have shape (2,); got (1,)"),
        ("a.jsonl", "[1, 2]\n[3, Infinity]\n", "line 2 holds inf"),
        ("a.jsonl", "[1, 2]\n[[3], [4, 5]]\n", "line 2 is ragged"),
        ("a.jsonl", '[1, "2"]\n', "line 1 must be a number or a list of numbers"),
        ("a.jsonl", "[true, 2]\n", "line 1 must be a number or a list of numbers"),
        ("a.jsonl", '{"value": 1}\n', 'without the key "observation"; it has value'),
        ("a.jsonl", "\n\n", "holds no observations"),
        ("a.txt", "1\n", "observations come as .npy"),
    ],
)
def test_a_bad_text_file_is_refused_with_its_line(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as refusal:
        read(tmp_path / name, PLANE)
    assert said in str(refusal.value)


def test_a_bad_array_is_refused(tmp_path):
    np.save(tmp_path / "whole.npy", np.zeros((9, 2)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:-8])
    (tmp_path / "none.npy").write_bytes(b"")
    holed = np.zeros((4, 2))
    holed[2, 1] = np.nan
    np.save(tmp_path / "holed.npy", holed)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "empty.npy", np.zeros((0, 2)))
    np.save(tmp_path / "wide.npy", np.zeros((4, 3)))
    for name, kind, said in [
        ("missing.npy", FileError, "there is no file"),
        ("cut.npy", FileError, "damaged or cut short"),
        ("none.npy", FileError, "damaged or cut short"),
        ("holed.npy", InputError, "nan at index (2, 1)"),
        ("words.npy", InputError, "must hold an array of numbers"),
        ("empty.npy", InputError, "holds no observations"),
        ("wide.npy", InputError, "needs (T, 2), or (S, T, 2)"),
    ]:
        with pytest.raises(kind) as refusal:
            read(tmp_path / name, PLANE)
        assert said in str(refusal.value)


@given(st.text())
def test_any_line_is_read_or_refused_on_purpose(text):
    try:
        observation = parse_line(text, (2,), "line 1")
    except InputError:
        return
    assert observation.shape == (2,)
    assert np.isfinite(observation).all()
