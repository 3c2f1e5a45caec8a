"""Without an extra there is one line that says which, and how to get it."""

import subprocess
import sys
import tomllib

from pfbr.cli.start import EXTRAS, missing_extra
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
