"""What the documents say is true: their code runs, their links lead somewhere, their commands exist."""

import ast
import re

import pytest
from typer.main import get_command

from pfbr.cli import app


@pytest.fixture(scope="module")
def readme(root) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_code_in_the_readme_runs_and_ends_with_an_assertion(readme, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) >= 3
    names: dict = {"__name__": "readme"}  # one reader, from top to bottom
    for block in blocks:
        assert isinstance(ast.parse(block).body[-1], ast.Assert), f"ends without an assertion:\n{block}"
        exec(compile(block, "README.md", "exec"), names)


def test_every_command_is_in_the_readme_and_every_command_in_the_readme_exists(readme):
    table = readme.split("\n## The command line\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `pfbr (\w+)", table, re.MULTILINE)) == set(get_command(app).commands)


def test_options_in_the_table_exist(readme):
    for command, rest in re.findall(r"^\| `pfbr (\w+)([^`]*)`", readme, re.MULTILINE):
        known = {option for parameter in get_command(app).commands[command].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, command


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(root, name):
    text = (root / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+?)\)", text):
        assert target.startswith("https://") or (root / target).exists(), target


def test_every_target_of_make_that_the_documents_name_exists(root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)\b(?=`| {2,})", (root / name).read_text(encoding="utf-8")))
        assert named <= targets
        assert named, name
