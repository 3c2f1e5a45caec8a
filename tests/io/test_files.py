"""What is written is whole or not there, whatever happens half-way."""

import errno
import json
import math
import os
import signal
import stat
import subprocess
import sys

import pytest

from pfbr.errors import FileError, InputError
from pfbr.io import files

OLD, NEW = b"what was there before", b"what shall be there " * 10_000
HALF_WAY = """
import os, signal, sys
from pfbr.io.files import atomic
with atomic(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def one_line(caught) -> str:
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_file_appears_whole_and_replaces_the_old_one(tmp_path):
    path = tmp_path / "file"
    for content in (OLD, NEW):
        with files.atomic(path) as file:
            file.write(content)
            assert not path.exists() or path.read_bytes() == OLD
        assert path.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_kill_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    ended = subprocess.run([sys.executable, "-c", HALF_WAY, str(path)], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD
    files.write_bytes(path, NEW)  # what the killed one left is in nobody's way
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, FileError("mine")])
def test_an_error_half_way_leaves_the_old_file_and_nothing_else(error, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    kind = error if isinstance(error, type) else type(error)

    def written():
        with files.atomic(path) as file:
            file.write(NEW)
            raise error

    with pytest.raises(kind):
        written()
    assert path.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_a_full_disk_is_an_error_of_one_line(broken, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(OLD)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, broken, full)
        with pytest.raises(FileError, match="No space left") as caught:
            files.write_bytes(path, NEW)
    assert str(path) in one_line(caught)
    assert path.read_bytes() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_device_that_is_full_says_so():
    with pytest.raises(FileError, match="No space left") as caught:
        files.write_bytes("/dev/full", NEW)
    assert "/dev/full" in one_line(caught)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path):
    """Above all for root, who could replace /dev/null by a file."""
    files.write_bytes("/dev/null", NEW)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_bytes(OLD)
    link.symlink_to(target)
    files.write_bytes(link, NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_any_other(umask, mode, tmp_path):
    before = os.umask(umask)
    try:
        files.write_text(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_an_old_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(OLD)
    path.chmod(0o600)
    files.write_bytes(path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_place_that_cannot_be_written_to_is_an_error_of_one_line(tmp_path):
    (tmp_path / "file").write_bytes(OLD)
    for path, word in (
        (tmp_path, "directory"),
        (tmp_path / "nowhere" / "file", "does not exist"),
        (tmp_path / "file" / "inside", "cannot write"),
        (tmp_path / ("long" * 100), "too long"),
    ):
        with pytest.raises(FileError, match=word) as caught:
            files.write_bytes(path, NEW)
        assert str(path) in one_line(caught)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_json_has_no_word_for_nan(tmp_path):
    value = {"a": [1.5, math.nan, {"b": math.inf}], "c": "text", "d": (True, None, 3)}
    files.write_json(tmp_path / "file.json", value)
    text = (tmp_path / "file.json").read_text()
    assert json.loads(text) == {"a": [1.5, None, {"b": None}], "c": "text", "d": [True, None, 3]}
    assert text.endswith("\n")


def test_directories_are_made_with_what_is_above_them(tmp_path):
    made = files.make_directory(tmp_path / "a" / "b")
    assert made.is_dir()
    assert files.make_directory(made) == made
    (tmp_path / "file").write_bytes(OLD)
    with pytest.raises(FileError, match="cannot make"):
        files.make_directory(tmp_path / "file" / "c")


def test_an_output_is_refused_before_the_work(tmp_path):
    assert files.check_writable(tmp_path / "a.npz", suffix=".npz") == tmp_path / "a.npz"
    with pytest.raises(InputError, match=r"a\.npz"):
        files.check_writable(tmp_path / "a.csv", suffix=".npz")
    (tmp_path / "b.npz").mkdir()
    with pytest.raises(InputError, match="directory"):
        files.check_writable(tmp_path / "b.npz", suffix=".npz")
    with pytest.raises(FileError, match="Create it first"):
        files.check_writable(tmp_path / "nowhere" / "a.npz", suffix=".npz")
