"""One process at a time; what a crash leaves behind holds nothing."""

import signal
import subprocess
import sys

import pytest

from pfbr.errors import FileError
from pfbr.io.locks import held, held_directory

KILLED = """
import os, signal, sys
from pfbr.io.locks import held
with held(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def hold(path):
    with held(path):
        pass


def test_it_is_held_once_and_leaves_nothing(tmp_path):
    path = tmp_path / "out"
    with held(path), pytest.raises(FileError, match="out is being written to by another process"):
        hold(path)
    hold(path)
    assert list(tmp_path.iterdir()) == []


def test_two_names_are_two_locks(tmp_path):
    with held(tmp_path / "a"):
        hold(tmp_path / "b")


def test_a_killed_process_holds_nothing(tmp_path):
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    hold(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_made_and_taken_away_when_nothing_came_into_it(tmp_path):
    place = tmp_path / "a" / "b"
    with held_directory(place), pytest.raises(FileError, match="another process"), held_directory(place):
        pass
    assert not place.exists()
    with held_directory(place):
        (place / "file").write_text("x")
    assert [path.name for path in place.iterdir()] == ["file"]
    with pytest.raises(FileError, match="is a file"), held_directory(place / "file"):
        pass


def test_a_place_that_cannot_be_locked_is_an_error_of_one_line(tmp_path):
    with pytest.raises(FileError, match="cannot write"):
        hold(tmp_path / "no" / "where")
