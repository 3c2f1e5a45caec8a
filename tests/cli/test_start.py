"""Without an extra there is one line that says which, and how to get it."""

import os
import subprocess
import sys
import tomllib

from pfbr.cli.start import EXTRAS, keep_compiled_functions, missing_extra
from tests.cli.commands import pfbr_command, refused

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = ["pfbr", *{words!r}]
from pfbr.cli.start import main
main()
"""


def without(module: str, *words: str) -> subprocess.CompletedProcess:
    code = WITHOUT.format(module=module, words=words)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_without_the_extra_cli_there_is_one_line():
    ended = without("typer", "--help")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == 'error: the command line needs the extra "cli": pip install "pfbr[cli]"\n'


def test_the_program_starts():
    ended = without("nothing", "--version")
    assert ended.returncode == 0
    assert ended.stdout.startswith("pfbr ")


def test_a_module_of_another_extra_is_named(monkeypatch):
    def read(path):
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn.svm")

    monkeypatch.setattr("pfbr.inference.operator_file.read_header", read)
    refused(
        pfbr_command("show", "a.pfbr"), 'this needs sklearn, which is in the extra "rivals": pip install "pfbr[rivals]"'
    )


def test_what_is_in_no_extra_is_somebody_elses_error():
    assert missing_extra(ModuleNotFoundError("x", name="neighbour.of.mine")) is None
    assert missing_extra(ModuleNotFoundError("x", name=None)) is None


def test_the_extras_are_those_of_the_package(root):
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for module, extra in EXTRAS.items():
        package = {"sklearn": "scikit-learn"}.get(module, module)
        assert any(entry.startswith(package) for entry in extras[extra]), module


CACHE = "JAX_COMPILATION_CACHE_DIR"


def test_compiled_functions_are_kept_where_the_system_keeps_such_things(tmp_path, monkeypatch):
    monkeypatch.delenv(CACHE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_compiled_functions()
    assert os.environ[CACHE] == str(tmp_path / "pfbr" / "jax")
    assert (tmp_path / "pfbr" / "jax").is_dir()


def test_what_the_user_has_set_stays_and_a_home_without_room_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE, "elsewhere")
    keep_compiled_functions()
    assert os.environ[CACHE] == "elsewhere"
    monkeypatch.delenv(CACHE)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep_compiled_functions()
    assert CACHE not in os.environ
