"""Steps to come from a table: times and inputs as the model has them, bad cells with their place."""

import numpy as np
import pytest

from pfbr.cli.ahead import read_ahead
from pfbr.cli.lines import Columns
from pfbr.errors import FileError, InputError
from pfbr.models import LogisticRegression
from tests.cli.commands import written

MODEL, COLUMNS = LogisticRegression(2), Columns("t", ("a", "b"))


def test_times_and_inputs_by_their_columns(tmp_path):
    path = written(tmp_path / "ahead.csv", "b,note,t,a\n1,x,3.5,2\n\n4,,5,5\n")
    length, times, inputs = read_ahead(path, MODEL, COLUMNS)
    assert (length, times) == (2, [3.5, 5.0])
    np.testing.assert_array_equal(inputs, [[2, 1], [5, 4]])
    assert read_ahead(path, MODEL, Columns("t")) == (2, [3.5, 5.0], None)


WRONG = {
    "no columns": ("t,a,b\n1,2,3\n", Columns(), "--time and --inputs"),
    "no such column": ("t,a,c\n1,2,3\n", COLUMNS, "no column 'b'"),
    "no steps": ("t,a,b\n", COLUMNS, "no steps to come"),
    "a gap": ("t,a,b\n1,,3\n", COLUMNS, "line 2, column 2"),
    "cut short": ("t,a,b\n1,2\n", COLUMNS, "line 2 has 2 columns"),
    "no time": ("t,a,b\nsoon,2,3\n", COLUMNS, "line 2, column 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path, name):
    text, columns, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        read_ahead(written(tmp_path / "ahead.csv", text), MODEL, columns)


def test_files_that_are_not_there_or_something_else(tmp_path):
    with pytest.raises(FileError, match="there is no file"):
        read_ahead(tmp_path / "ahead.csv", MODEL, COLUMNS)
    with pytest.raises(InputError, match=r"as \.csv"):
        read_ahead(tmp_path / "ahead.npy", MODEL, COLUMNS)
