"""The notebook runs from top to bottom, and what its cells end with shows itself."""

import ast
import json

import pytest

pytestmark = pytest.mark.slow  # three models to compile: the same code is on pages that are tested every time


def last_value(source: str, names: dict):
    """Run a cell; the value of its last line if that is an expression, as a notebook has it."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.fixture(scope="module")
def shown(root) -> list:
    """What each cell of code shows, None where it shows nothing."""
    notebook = json.loads((root / "examples/first.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict = {}
    return [last_value(cell, names) for cell in cells]


def test_it_runs_and_its_assertions_hold(shown):
    assert len(shown) == 10


def test_posteriors_traces_and_forecasts_show_themselves(shown):
    values = [value for value in shown if value is not None]
    tables = [value._repr_html_() for value in values if not hasattr(value, "_repr_png_")]
    figures = [value._repr_png_() for value in values if hasattr(value, "_repr_png_")]
    assert len(tables) == 3
    assert all("<svg" in table and "<table>" in table for table in tables)
    assert len(figures) == 3
    assert all(figure.startswith(b"\x89PNG") and len(figure) > 5000 for figure in figures)


def test_it_is_stored_without_outputs(root):
    notebook = json.loads((root / "examples/first.ipynb").read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in notebook["cells"])
