"""The program as a whole: help that teaches and is quick, and errors of one line."""

import subprocess
import sys

import pytest

import pfbr
from pfbr.cli import app
from tests.cli.commands import pfbr_command, refused

COMMANDS = [
    "demo",
    "check",
    "infer",
    "forecast",
    "train",
    "compare",
    "calibrate",
    "data",
    "reproduce",
    "bench",
    "export",
    "show",
    "report",
]
WIDE = {"COLUMNS": "200", "TERMINAL_WIDTH": "200"}


def test_these_are_the_commands():
    assert [command.callback.__name__ for command in app.registered_commands] == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example(command):
    result = pfbr_command(command, "--help", env=WIDE)
    assert result.exit_code == 0
    assert f"pfbr {command}" in result.output.split("Usage:")[1].split("\n", 1)[1]  # an example, beside the usage


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help(command):
    result = pfbr_command(command, "--help", env=WIDE)
    rows = [line.strip("│ ") for line in result.output.splitlines() if line.startswith("│ ") and "--" in line[:12]]
    assert rows
    for row in rows:
        assert len(row.split()) > 4, row


def test_version():
    assert pfbr_command("--version").output == f"pfbr {pfbr.__version__}\n"


def test_a_usage_error_is_one_line_too():
    refused(pfbr_command("infer", "gaussian-mean"), "OBSERVATIONS", "`pfbr infer --help` shows how.")
    refused(pfbr_command("infer", "gaussian-mean", "a.csv", "--particels", 3), "--particels")
    refused(pfbr_command("infer", "gaussian-mean", "a.csv", "--particles", 1), "--particles")
    refused(pfbr_command("infre"), "infre")


def run_python(code: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)


def test_help_loads_neither_jax_nor_numpy():
    code = (
        "import sys\n"
        "from pfbr.cli import app\n"
        "for words in (['--help'], ['infer', '--help'], ['reproduce', '--help'], ['--version']):\n"
        "    try:\n"
        "        app(words)\n"
        "    except SystemExit:\n"
        "        pass\n"
        "heavy = {'jax', 'numpy', 'equinox', 'diffrax', 'optax', 'matplotlib'} & set(sys.modules)\n"
        "print('LOADED', sorted(heavy))\n"
    )
    assert run_python(code).stdout.strip().endswith("LOADED []")


def test_the_installed_program_ends_with_status_two_and_one_line():
    ended = run_python("from pfbr.cli import app; app()", "show", "no-such-file.pfbr")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
