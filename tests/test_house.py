"""The house is what the README draws: each file has a line in the tree, and imports only from files above it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

IGNORED = {"__pycache__"}


def house_lines(root: Path) -> list[tuple[int, str, str]]:
    """(depth, name, comment) of each line of the tree in the README's section "The house"."""
    section = (root / "README.md").read_text(encoding="utf-8").split("\n## The house\n")[1].split("\n## ")[0]
    block = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert block, "the section has a ```text block with the tree"
    lines = []
    for line in block[1].splitlines():
        found = re.fullmatch(r"( *)(\S+)(?: {2,}(\S.*))?", line)
        assert found, f"not a line of a tree: {line!r}"
        lines.append((len(found[1]) // 2, found[2], found[3] or ""))
    return lines


@pytest.fixture(scope="module")
def tree(root) -> dict[str, str]:
    """Path to comment, in the order of the README; folders end with a slash."""
    paths: dict[str, str] = {}
    folders: list[str] = []
    for depth, name, comment in house_lines(root):
        del folders[depth:]
        path = "".join(folders) + name
        assert path not in paths, f"{path} is in the tree twice"
        paths[path] = comment
        if name.endswith("/"):
            folders.append(name)
    return paths


def source_files(root: Path) -> list[str]:
    files = [path for path in (root / "src/pfbr").rglob("*") if path.is_file() and not IGNORED & set(path.parts)]
    return [path.relative_to(root).as_posix() for path in files]


def module_name(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_modules(root: Path, path: str, known: set[str]) -> set[str]:
    """The modules of the house that a file names in its imports."""
    named = set()
    for node in ast.walk(ast.parse((root / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute in this house"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from pfbr import truth` needs the file truth.py, `from pfbr.models import Model` the folder's front door
            named |= {name for name in inner if name in known}
            if inner - known:
                named.add(str(node.module))
    return named & known


def test_every_file_is_in_the_tree_and_every_line_of_the_tree_is_true(root, tree):
    drawn = {path for path in tree if path.startswith("src/pfbr/")}
    files = {path for path in source_files(root) if not re.fullmatch(r"src/pfbr/.+/__init__\.py", path)}
    folders = {f"{path.rsplit('/', 1)[0]}/" for path in files}
    assert sorted((files | folders) - drawn) == [], "missing from the tree in the README"
    assert sorted(drawn - files - folders) == [], "in the tree of the README, but not on disk"
    missing = [path for path in tree if not (root / path).exists()]
    assert missing == []


def test_every_file_has_a_comment_and_opens_with_its_idea(root, tree):
    assert [path for path, comment in tree.items() if not comment and not path.endswith("/")] == []
    for path in source_files(root):
        if path.endswith(".py"):
            assert ast.get_docstring(ast.parse((root / path).read_text(encoding="utf-8"))), f"{path} has no docstring"


def test_a_file_imports_only_from_files_above_it(root, tree):
    files = [path for path in source_files(root) if path.endswith(".py")]  # one without a line fails the test above
    place = {module_name(path): number for number, path in enumerate(tree) if path.endswith(".py")}
    for path in files:  # the front door of a folder opens after its last file
        if path.endswith("/__init__.py") and path not in tree:
            inside = [place[name] for name in place if name.startswith(module_name(path) + ".")]
            place[module_name(path)] = max(inside) + 0.5
    wrong = [
        f"{path} imports {name}"
        for path in files
        for name in imported_modules(root, path, set(place))
        if place[name] >= place.get(module_name(path), float("inf"))
    ]
    assert wrong == []


def test_no_file_is_too_long(root):
    lengths = {
        p: len((root / p).read_text(encoding="utf-8").splitlines()) for p in source_files(root) if p.endswith(".py")
    }
    assert {path: length for path, length in lengths.items() if length > 350} == {}


def test_importing_pfbr_is_light_and_changes_no_settings(root):
    """The core does not pull in the command line, the plots or the rivals' libraries."""

    heavy = ["typer", "rich", "matplotlib", "blackjax", "cuthbert", "sklearn", "arviz", "pandas"]
    script = (
        "import sys, jax; before = dict(jax.config.values); import pfbr; "
        f"print([name for name in {heavy} if name in sys.modules], dict(jax.config.values) == before)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.strip() == "[] True"
