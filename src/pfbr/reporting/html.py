"""A page's parts to one HTML file that needs no network; draws what the records hold, computes nothing."""

import base64
import dataclasses
import html
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pfbr.reporting.parts import LOOKS, Finding, Movie, Page, Part, Picture, Table

MARKS = {True: "good", False: "bad", None: "plain"}


def write_page(path: Path, page: Page) -> Path:
    """Write the page; the same parts give the same file."""
    folder = resources.files("pfbr.reporting") / "assets"
    text = (folder / "experiment.html").read_text(encoding="utf-8")
    looks = {name: dataclasses.asdict(look) for name, look in {**LOOKS, **page.looks}.items()}
    data: dict[str, Any] = {"looks": looks, "parts": {}}
    body = "\n".join(_part(f"part-{i}", part, data["parts"]) for i, part in enumerate(page.parts))
    for mark, piece in {
        "/*STYLE*/": "".join((folder / f"{name}.css").read_text(encoding="utf-8") for name in ("page", "experiment")),
        "/*SCRIPT*/": "".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in ("charts", "movie")),
        "<!--TITLE-->": html.escape(page.title),
        "<!--LEAD-->": html.escape(page.lead),
        "<!--FINDINGS-->": _findings(page.findings),
        "<!--PARTS-->": body,
        "<!--FACTS-->": "".join(f"<p>{html.escape(fact)}</p>" for fact in page.facts),
        "/*DATA*/": json.dumps(_plain(data), separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/"),
    }.items():
        text = text.replace(mark, piece)
    path.write_text(text, encoding="utf-8")
    return path


def write_index(path: Path, entries: Sequence[tuple[str, Page]]) -> Path:
    """A page that leads to others: (address, page) each, with what was found."""
    cards = [
        f'<section class="card"><h2><a href="{html.escape(address)}">{html.escape(page.title)}</a></h2>'
        f"{_findings(page.findings)}</section>"
        for address, page in entries
    ]
    folder = resources.files("pfbr.reporting") / "assets"
    text = (folder / "experiment.html").read_text(encoding="utf-8")
    for mark, piece in {
        "/*STYLE*/": "".join((folder / f"{name}.css").read_text(encoding="utf-8") for name in ("page", "experiment")),
        "/*SCRIPT*/": "",
        "<!--TITLE-->": "Particle flow Bayes’ rule: the experiments",
        "<!--LEAD-->": "Each page was drawn from the records beside it.",
        "<!--FINDINGS-->": "",
        "<!--PARTS-->": "\n".join(cards),
        "<!--FACTS-->": "",
        "/*DATA*/": "{}",
    }.items():
        text = text.replace(mark, piece)
    path.write_text(text, encoding="utf-8")
    return path


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    items = "".join(f'<li class="{MARKS[f.good]}">{html.escape(f.text)}</li>' for f in findings)
    return f'<ul class="findings">{items}</ul>'


def _part(name: str, part: Part, data: dict[str, Any]) -> str:
    head = f"<figcaption><h2>{html.escape(part.title)}</h2><p>{html.escape(part.note)}</p></figcaption>"
    if isinstance(part, Table):
        return f'<section class="numbers" id="{name}">{head.replace("figcaption", "header")}{_table(part)}</section>'
    if isinstance(part, Picture):
        source = "data:image/png;base64," + base64.b64encode(part.png).decode("ascii")
        return f'<figure id="{name}">{head}<img alt="{html.escape(part.alt)}" src="{source}"></figure>'
    if isinstance(part, Movie):
        data[name] = {"movie": part.data}
        return f'<section class="movie" id="{name}">{head.replace("figcaption", "header")}</section>'
    data[name] = {
        "rows": part.rows,
        "first": part.first or next(iter(part.charts)),
        "charts": [[list(key), dataclasses.asdict(chart)] for key, chart in part.charts.items()],
    }
    return (
        f'<figure class="chooser" id="{name}">{head}<div class="buttons"></div>'
        '<div class="legend"></div><div class="plot"></div></figure>'
    )


def _table(table: Table) -> str:
    heads = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    rows = []
    for r, row in enumerate(table.rows):
        cells = []
        for c, cell in enumerate(row):
            text = html.escape(cell)
            if c == 0 and table.methods and table.methods[r] in LOOKS:
                text = f'<i class="dot" data-method="{table.methods[r]}"></i>{text}'
            cells.append(f"<td><strong>{text}</strong></td>" if (r, c) in table.best else f"<td>{text}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _plain(value: Any) -> Any:
    """As JSON has it: numbers in five digits, which no screen can tell from more; null for what is not finite."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Sequence):
        return [_plain(inner) for inner in value]
    number = float(value)
    return float(f"{number:.5g}") if math.isfinite(number) else None
