"""Records survive a kill, and say what is wrong with them."""

import contextlib
import dataclasses
import json
import math
import os

import numpy as np
import pytest

from pfbr.errors import FileError
from pfbr.io.records import Measurement, Records, read_arrays, write_arrays

LINES = [
    Measurement("a", "m", 1, 1.5, 0.1, 4, 2, 0),
    Measurement("a", "m", None, math.inf),
    Measurement("b", "n", 2, -1.0),
]


def test_records_come_back_as_they_went(tmp_path):
    records = Records(tmp_path / "run", {"seed": 0})
    records.add(LINES[:2])
    records.add(LINES[2:])
    assert Records(tmp_path / "run", {"seed": 0}).measurements() == LINES
    assert records.settings == {"seed": 0}


def test_not_a_number_is_json_all_the_same(tmp_path):
    records = Records(tmp_path)
    records.add([Measurement("a", "m", 1, math.nan)])
    line = (tmp_path / "measurements.jsonl").read_text()
    json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert math.isnan(records.measurements()[0].value)


def test_of_two_measurements_of_one_thing_the_later_counts(tmp_path):
    records = Records(tmp_path)
    records.add(LINES)
    again = dataclasses.replace(LINES[0], value=2.5)
    records.add([again])
    assert records.measurements() == [again, *LINES[1:]]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_line_is_dropped_and_the_next_one_is_whole(tmp_path, cut):
    records = Records(tmp_path)
    records.add(LINES)
    path = tmp_path / "measurements.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    again = Records(tmp_path)
    assert again.measurements() == LINES[:2]
    again.add([LINES[2]])
    assert again.measurements() == LINES


def test_other_settings_in_the_same_place_are_refused(tmp_path):
    Records(tmp_path, {"seed": 0, "n": 1})
    with pytest.raises(FileError, match="seed"):
        Records(tmp_path, {"seed": 1, "n": 1})
    (tmp_path / "measurements.jsonl").write_text("{}\n")
    with pytest.raises(FileError, match="no measurement"):
        Records(tmp_path).measurements()


def test_damaged_arrays_are_refused_whatever_byte_was_hit(tmp_path):
    """Every error that reading may raise becomes one sentence."""
    write_arrays(tmp_path, "run", {"a": 1}, {"x": np.arange(6.0), "y": np.ones((2, 3))})
    whole = (tmp_path / "run.npz").read_bytes()
    for at in range(0, len(whole), 7):
        (tmp_path / "run.npz").write_bytes(whole[:at] + bytes(b ^ 0x55 for b in whole[at : at + 40]) + whole[at + 40 :])
        with contextlib.suppress(FileError):  # some bytes decide nothing
            read_arrays(tmp_path, "run", "make it")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_an_error_of_one_line(tmp_path):
    records = Records(tmp_path, {"steps": 3})
    (tmp_path / "measurements.jsonl").symlink_to("/dev/full")
    with pytest.raises(FileError, match="No space left") as caught:
        records.add([Measurement("a", "score", 1, 0.5)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[1]", "3", ""])
def test_damaged_settings_are_refused(text, tmp_path):
    Records(tmp_path, {"steps": 3})
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(FileError, match="damaged"):
        Records(tmp_path, {"steps": 3})
    with pytest.raises(FileError, match="damaged"):
        _ = Records(tmp_path).settings
