"""What was appended is there after a kill; a part of a line is cut off, damage is refused, and one process holds it."""

import subprocess
import sys

import pytest

from pfbr.errors import FileError
from pfbr.io.journal import Journal

ENTRIES = [{"n": 1, "line": "[0.3]"}, {"line": "ä \n"}, [1, None]]


def written(path, entries=ENTRIES):
    journal = Journal(path)
    for entry in entries:
        journal.append(entry)
    journal.close()


def reopened(path) -> list:
    journal = Journal(path)
    journal.close()
    return journal.entries


def test_entries_come_back_until_they_are_cleared(tmp_path):
    path = tmp_path / "log"
    written(path)
    journal = Journal(path)
    assert journal.entries == ENTRIES
    assert journal.size == path.stat().st_size > 0
    journal.clear()
    journal.append("more")
    journal.close()
    assert reopened(path) == ["more"]


def test_a_line_that_was_cut_anywhere_was_never_there(tmp_path):
    path = tmp_path / "log"
    written(path)
    content = path.read_bytes()
    last = content.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(content)):
        path.write_bytes(content[:end])
        assert reopened(path) == ENTRIES[:2]
        assert path.stat().st_size == last
        written(path, ["next"])
        assert reopened(path) == [*ENTRIES[:2], "next"]


def test_damage_in_the_middle_is_refused(tmp_path):
    path = tmp_path / "log"
    written(path)
    content = bytearray(path.read_bytes())
    content[12] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="damaged at byte 0"):
        Journal(path)
    assert path.read_bytes() == bytes(content)


def test_one_process_at_a_time_and_a_crash_leaves_no_lock(tmp_path):
    path = tmp_path / "log"
    held = Journal(path)
    with pytest.raises(FileError, match="another process is using"):
        Journal(path)
    held.close()
    script = (
        f"from pfbr.io.journal import Journal; import os; Journal({str(path)!r}).append(1); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == -9
    assert reopened(path) == [1]


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path):
    with pytest.raises(FileError, match="no directory"):
        Journal(tmp_path / "none" / "log")
    with pytest.raises(FileError, match="cannot open"):
        Journal(tmp_path)
