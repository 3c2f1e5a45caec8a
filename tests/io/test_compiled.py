"""Compiled functions are found again by the next program, where the user wants them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pfbr
from pfbr.errors import FileError
from pfbr.io.compiled import usual_directory

PROGRAM = """
import sys, jax, pfbr
if "early" in sys.argv:
    jax.jit(lambda x: x + 1)(1.0)  # something is compiled before
print(pfbr.keep_compiled(*sys.argv[1:2]))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.jit(lambda x: jax.numpy.sort(x) + 2)(jax.numpy.arange(7.0))
"""


def program(*words: str, **environment: str) -> str:
    known = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(
        command, env=known | environment, capture_output=True, text=True, check=True, timeout=120
    ).stdout.strip()


def kept(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if "cache" in path.name]


def test_what_is_compiled_after_it_is_on_disk(tmp_path):
    assert program(str(tmp_path / "mine"), "early") == str(tmp_path / "mine")
    assert kept(tmp_path / "mine")


def test_without_a_directory_it_is_the_command_line_s_or_the_one_that_jax_was_told(tmp_path):
    assert program(XDG_CACHE_HOME=str(tmp_path)) == str(tmp_path / "pfbr" / "jax")
    assert kept(tmp_path / "pfbr" / "jax")
    assert program(JAX_COMPILATION_CACHE_DIR=str(tmp_path / "told")) == str(tmp_path / "told")


def test_a_place_that_cannot_be_made_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be kept in"):
        pfbr.keep_compiled(tmp_path / "file" / "below")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert usual_directory() is None
