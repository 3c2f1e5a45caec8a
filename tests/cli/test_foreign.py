"""A user's code prints to stderr, stays where we are, and does not end the program."""

import io
import os
import subprocess
import sys

import pytest

from pfbr.cli.foreign import answers_alone, guarded
from pfbr.errors import ModelError


def test_what_it_prints_is_not_on_stdout(capsys):
    with guarded("it"):
        print("hello")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "hello\n")


def test_an_exit_is_an_error_of_ours():
    with pytest.raises(ModelError, match=r"it calls sys\.exit \(SystemExit: 3\)"), guarded("it"):
        sys.exit(3)


def test_directory_path_and_arguments_stay(tmp_path):
    before = os.getcwd(), list(sys.path), list(sys.argv)
    with guarded("it"):
        os.chdir(tmp_path)
        sys.path.insert(0, "/nowhere")
        sys.argv.clear()
    assert (os.getcwd(), sys.path, sys.argv) == before


def test_answers_go_where_they_should_and_nothing_else_does(capsys):
    answers = io.StringIO()
    with answers_alone(answers) as own:
        print("noise")
        own.write("answer")
    assert answers.getvalue() == "answer"
    assert capsys.readouterr().err == "noise\n"


def test_what_is_written_below_python_does_not_get_between_the_answers():
    code = (
        "import os, sys\n"
        "from pfbr.cli.foreign import answers_alone\n"
        "with answers_alone(sys.stdout) as answers:\n"
        "    os.write(1, b'noise')\n"
        "    answers.write('answer\\n')\n"
        "    answers.flush()\n"
        "print('after')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (ended.stdout, ended.stderr) == ("answer\nafter\n", "noise")
