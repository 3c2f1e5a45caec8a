"""Streams from files: read as they are, with what came with them, or refused with line and column."""

import datetime

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pfbr.cli.lines import Columns
from pfbr.cli.observations import read
from pfbr.errors import FileError, InputError
from pfbr.models import GaussianMean, GaussianMixture, LogisticRegression, MiniBatch, Model

PLANE, ONE = GaussianMean(2), GaussianMixture()
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2).map(lambda s: (s[0], 2)), elements=FINITE))
def test_what_is_written_is_read_in_every_format(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("formats")
    np.save(folder / "a.npy", values)
    (folder / "a.csv").write_text("".join(f"{a!r},{b!r}\n" for a, b in values.tolist()))
    (folder / "a.jsonl").write_text("".join(f"{row!r}\n" for row in values.tolist()))
    for name in ("a.npy", "a.csv", "a.jsonl"):
        np.testing.assert_array_equal(read(folder / name, PLANE).observations, values)


def test_a_header_blank_lines_and_objects_are_understood(tmp_path):
    (tmp_path / "a.csv").write_text("first,second\n1,2\n\n3,4\n")
    (tmp_path / "a.jsonl").write_text('{"observation": [1, 2], "sensor": 5}\n\n[3, 4]\n')
    for name in ("a.csv", "a.jsonl"):
        np.testing.assert_array_equal(read(tmp_path / name, PLANE).observations, [[1, 2], [3, 4]])


def test_plain_numbers_serve_a_model_with_one_value(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "a.csv").write_text("0\n1\n2\n")
    (tmp_path / "a.jsonl").write_text("0\n1\n2\n")
    for name in ("a.npy", "a.csv", "a.jsonl"):
        np.testing.assert_array_equal(read(tmp_path / name, ONE).observations, [[0], [1], [2]])


def test_many_streams_and_batches(tmp_path):
    np.save(tmp_path / "many.npy", np.zeros((5, 7, 2)))
    assert read(tmp_path / "many.npy", PLANE).observations.shape == (5, 7, 2)
    assert read(tmp_path / "many.npy", MiniBatch(PLANE, 7)).observations.shape == (
        5,
        7,
        2,
    )  # one stream of five batches


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "1,2\n3\n", "line 2 has 1 columns, the rows above have 2. Cut short?"),
        ("a.csv", "1,2\n3,x\n", "line 2, column 2: 'x' is not a number"),
        ("a.csv", "1,2\n3,inf\n", "line 2, column 2: 'inf' is not a number"),
        ("a.csv", "1,2\n3,1_000\n", "line 2, column 2: '1_000' is not a number"),
        ("a.csv", "1,2\n3,0x10\n", "line 2, column 2: '0x10' is not a number"),
        ("a.csv", "1,2\n" + "9" * 5000 + ",2\n", "line 2, column 1: '999"),
        ("a.csv", "1,2\n3,1e999\n", "line 2, column 2: '1e999' is too large"),
        ("a.csv", "1,2\n3,4\x00\n", "line 2"),
        ("a.csv", "", "holds no observations"),
        ("a.csv", "a,b\n", "holds no observations"),
        ("a.csv", "1,2,3\n", "needs (T, 2)"),
        ("a.jsonl", "[1, 2]\n[3, 4", "line 2 is not JSON"),
        ("a.jsonl", "[1, 2]\n[3]\n", "line 2 must have shape (2,); got (1,)"),
        ("a.jsonl", "[1, 2]\n[3, Infinity]\n", "line 2 holds Infinity, which is too large"),
        ("a.jsonl", "[1, 2]\n[[3], [4, 5]]\n", "line 2 is ragged"),
        ("a.jsonl", '[1, "2"]\n', "line 1 must be a number or a list of numbers"),
        ("a.jsonl", "[true, 2]\n", "line 1 must be a number or a list of numbers"),
        ("a.jsonl", '{"value": 1}\n', 'without the key "observation"; it has value'),
        ("a.jsonl", '{"retract": null}\n', "which only a live stream"),
        ("a.jsonl", '[1, 2]\n{"observation": [1, 2], "time": 2}\n', 'line 2 has "time", unlike the lines above'),
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
    holed[2, 1] = np.inf
    np.save(tmp_path / "holed.npy", holed)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "empty.npy", np.zeros((0, 2)))
    np.save(tmp_path / "wide.npy", np.zeros((4, 3)))
    for name, kind, said in [
        ("missing.npy", FileError, "there is no file"),
        ("cut.npy", FileError, "claims an array of shape (9, 2) and holds 136 bytes"),
        ("none.npy", FileError, "damaged or cut short"),
        ("holed.npy", InputError, "inf at index (2, 1)"),
        ("words.npy", FileError, "must hold an array of numbers"),
        ("empty.npy", InputError, "holds no observations"),
        ("wide.npy", InputError, "needs (T, 2), or (S, T, 2)"),
    ]:
        with pytest.raises(kind) as refusal:
            read(tmp_path / name, PLANE)
        assert said in str(refusal.value)


class Scalars(GaussianMean):
    """Takes one number with every observation, and says so."""

    def log_likelihood(self, x, observation, *, inputs):
        return super().log_likelihood(x - inputs, observation)

    def sample_observation(self, key, x, *, inputs):
        return super().sample_observation(key, x + inputs)

    def sample_inputs(self, key):
        return jax.random.normal(key)


class ByName(Scalars):
    """The same, by a name."""

    def log_likelihood(self, x, observation, *, inputs):
        return super().log_likelihood(x, observation, inputs=inputs["shift"])

    def sample_observation(self, key, x, *, inputs):
        return super().sample_observation(key, x, inputs=inputs["shift"])

    def sample_inputs(self, key):
        return {"shift": jax.random.normal(key)}


def test_gaps_in_every_format(tmp_path):
    np.save(tmp_path / "a.npy", [[1, np.nan], [np.nan, np.nan], [3, 4]])
    (tmp_path / "a.csv").write_text("x,y\n1,\nNA,null\n3,4\n")
    (tmp_path / "b.csv").write_text("1,NaN\n\n,\n3,4\n")  # the blank line is none
    (tmp_path / "a.jsonl").write_text("[1, null]\nnull\n[3, 4]\n")
    for name in ("a.npy", "a.csv", "b.csv", "a.jsonl"):
        found = read(tmp_path / name, PLANE).observations
        np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, np.nan], [3, 4]])
    (tmp_path / "one.csv").write_text('y\n1\n""\n2\n')
    np.testing.assert_array_equal(read(tmp_path / "one.csv", ONE).observations, [[1], [np.nan], [2]])
    (tmp_path / "gap-first.csv").write_text("NA,2\n3,4\n")
    assert len(read(tmp_path / "gap-first.csv", PLANE).observations) == 2  # a gap is no header


def test_columns_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("y,when,b,a\n1,0.5,20,10\n0,1.5,40,30\n")
    rows = ['{"y": 1, "when": 0.5, "b": 20, "a": 10}', '{"y": 0, "when": 1.5, "b": 40, "a": 30}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    model, columns = LogisticRegression(2), Columns.of("when", "a,b", None)
    for name in ("a.csv", "a.jsonl"):
        found = read(tmp_path / name, model, columns)
        np.testing.assert_array_equal(found.observations, [[1], [0]])
        assert found.times == [0.5, 1.5]
        np.testing.assert_array_equal(found.inputs, [[10, 20], [30, 40]])
    chosen = read(tmp_path / "a.csv", PLANE, Columns.of(None, None, "b,y"))
    np.testing.assert_array_equal(chosen.observations, [[20, 1], [40, 0]])
    assert chosen.times is None
    assert chosen.inputs is None


def test_inputs_come_as_the_model_has_them(tmp_path):
    (tmp_path / "a.csv").write_text("y,shift\n1,10\n2,20\n")
    columns = Columns.of(None, "shift", None)
    np.testing.assert_array_equal(read(tmp_path / "a.csv", Scalars(1), columns).inputs, [10, 20])
    np.testing.assert_array_equal(read(tmp_path / "a.csv", ByName(1), columns).inputs["shift"], [10, 20])
    lines = ['{"observation": 1, "inputs": {"shift": 10}}', '{"observation": 2, "inputs": {"shift": 20}}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    np.testing.assert_array_equal(read(tmp_path / "a.jsonl", ByName(1)).inputs["shift"], [10, 20])


def test_times_may_be_dates(tmp_path):
    (tmp_path / "a.csv").write_text("t,y\n2024-05-01,1\n2024-05-02T12:00,2\n")
    times = read(tmp_path / "a.csv", ONE, Columns.of("t", None, None)).times
    assert times == [datetime.datetime(2024, 5, 1), datetime.datetime(2024, 5, 2, 12)]


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        ("times,y\n1,2\n", ("time", None, None), "line 1 has no column 'time'. Did you mean 'times'?"),
        ("t,y\n1,2\n", (None, "u", None), "has no column 'u'. It has t, y."),
        ("t,y\n,2\n", ("t", None, None), "line 2, column 1: '' is no time"),
        ("t,y\nnoon,2\n", ("t", None, None), "line 2, column 1: 'noon' is no time"),
        ("u,y\n,2\n", (None, "u", None), "line 2, column 1: '' is not a number"),
        ("t,t,y\n1,1,2\n", ("t", None, None), "has 2 columns 't'"),
        ("t\n1\n", ("t", None, None), "no column left for the observation"),
        ("1,2\n3,4\n", ("t", None, None), "has no column 't'"),
    ],
)
def test_bad_columns_are_refused(tmp_path, content, columns, said):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError) as refusal:
        read(tmp_path / "a.csv", ONE, Columns.of(*columns))
    assert said in str(refusal.value)


def test_an_array_has_no_names(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    with pytest.raises(InputError, match="have no names"):
        read(tmp_path / "a.npy", ONE, Columns.of("t", None, None))


def test_a_model_that_draws_no_observation_takes_the_shape_of_the_first(tmp_path):
    class Quiet(Model):
        dim: int = 2

        def sample_prior(self, key):
            return jax.random.normal(key, (2,))

        def log_prior(self, x):
            return -0.5 * x @ x

        def log_likelihood(self, x, observation):
            return -0.5 * (observation - x) @ (observation - x)

    (tmp_path / "a.jsonl").write_text("null\n[1, 2]\n")
    np.testing.assert_array_equal(read(tmp_path / "a.jsonl", Quiet()).observations, [[np.nan] * 2, [1, 2]])
    (tmp_path / "b.jsonl").write_text("[1, 2]\n[3]\n")
    with pytest.raises(InputError, match=r"line 2 must have shape \(2,\); got \(1,\)"):
        read(tmp_path / "b.jsonl", Quiet())
