"""What the documents say is true: their code runs, their links lead somewhere, their commands exist."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

from pfbr.cli import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")), "README.md"]
WITH_CODE = [page for page in PAGES if "```python" in (ROOT / page).read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def commands() -> dict:
    return get_command(app).commands


@pytest.mark.parametrize("page", WITH_CODE)
def test_code_runs_and_ends_with_an_assertion(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {"__name__": "page"}  # one reader, from top to bottom
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert isinstance(ast.parse(blocks[-1]).body[-1], ast.Assert | ast.Expr), f"{page} ends without an assertion"
    assert "assert " in blocks[-1], f"{page} ends without an assertion"


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_that_are_named_exist(page, commands):
    text = (ROOT / page).read_text(encoding="utf-8")
    for command, rest in re.findall(r"(?:^|[`$ ])pfbr ([a-z]+)\b([^`\n]*)", text, re.MULTILINE):
        if command not in commands:
            assert command not in {"repair", "shipped"}, f"{page} names `pfbr {command}`"
            continue
        known = {option for parameter in commands[command].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z][a-z-]+", rest)) <= known, f"{page}: pfbr {command}{rest}"


def test_every_command_is_told(commands):
    text = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `pfbr (\w+)", text, re.MULTILINE)) == set(commands)


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        beside = (ROOT / page).parent / target
        assert target.startswith("https://") or beside.exists(), f"{page}: {target}"


def test_every_target_of_make_that_the_documents_name_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)\b(?=`| {2,})", (ROOT / name).read_text(encoding="utf-8")))
        assert named <= targets
        assert named, name


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
