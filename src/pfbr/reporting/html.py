"""A page's parts to one HTML file that needs no network; draws what the records hold, computes nothing."""

import base64
import dataclasses
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pfbr.io.files import write_text
from pfbr.reporting.parts import LOOKS, Finding, Look, Movie, Page, Part, Picture, Table

MARKS = {True: "good", False: "bad", None: "plain"}


def write_page(path: Path, page: Page) -> Path:
    """Write the page; the same parts give the same file."""
    parts, data = drawn_parts(page.parts, page.looks)
    facts = "".join(f"<p>{html.escape(fact)}</p>" for fact in page.facts)
    return write_document(
        path,
        title=f"{page.title} · pfbr",
        heading=page.title,
        lead=page.lead,
        body="\n".join([listed(page.findings), *parts, f"<footer>{facts}</footer>"]),
        data=data,
        styles=("page", "parts"),
        scripts=("page", "charts", "movie"),
    )


def drawn_parts(parts: Sequence[Part], looks: Mapping[str, Look]) -> tuple[list[str], dict[str, Any]]:
    """Each part as HTML, and the data that the script `charts` draws them from."""
    known = {name: dataclasses.asdict(look) for name, look in {**LOOKS, **looks}.items()}
    data: dict[str, Any] = {"looks": known, "parts": {}}
    return [_part(f"part-{i}", part, data["parts"]) for i, part in enumerate(parts)], _plain(data)


def write_index(path: Path, entries: Sequence[tuple[str, Page]]) -> Path:
    """A page that leads to others: (address, page) each, with what was found."""
    cards = [
        f'<section class="card"><h2><a href="{html.escape(address)}">{html.escape(page.title)}</a></h2>'
        f"{listed(page.findings)}</section>"
        for address, page in entries
    ]
    heading = "Particle flow Bayes’ rule: the experiments"
    return write_document(
        path,
        title=f"{heading} · pfbr",
        heading=heading,
        lead="Each page was drawn from the records beside it.",
        body="\n".join(cards),
        data={},
        styles=("page", "parts"),
        scripts=(),
    )


def write_document(
    path: Path,
    *,
    title: str,
    heading: str,
    lead: str,
    body: str,
    data: Any,
    styles: Sequence[str],
    scripts: Sequence[str],
) -> Path:
    """One file with its styles, scripts and data inside; `styles` and `scripts` are names of assets."""
    pieces = {
        "<!--TITLE-->": html.escape(title),
        "<!--HEADING-->": html.escape(heading),
        "<!--LEAD-->": html.escape(lead),
        "<!--BODY-->": body,
        "/*STYLE*/": "".join(asset(f"{name}.css") for name in styles),
        "/*SCRIPT*/": "".join(asset(f"{name}.js") for name in scripts),
        "/*DATA*/": json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/"),
    }
    marks = re.compile("|".join(map(re.escape, pieces)))
    write_text(path, marks.sub(lambda mark: pieces[mark[0]], asset("page.html")))
    return path


def asset(name: str) -> str:
    return (resources.files("pfbr.reporting") / "assets" / name).read_text(encoding="utf-8")


def listed(findings: Sequence[Finding]) -> str:
    """What was found, as a list."""
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
