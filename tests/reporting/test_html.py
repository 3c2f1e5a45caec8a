"""One file with everything inside: what a user wrote stays text, whatever it looks like."""

import json
import re

from pfbr.reporting.html import write_index, write_page
from pfbr.reporting.parts import Chart, Chooser, Finding, Page, Series, Table

PAGE = Page(
    title="A <b> /*DATA*/ <!--BODY-->",
    lead="lead & more",
    findings=[Finding("won", True), Finding("lost </script>", False)],
    parts=[
        Chooser("c", "n", ("r",), {("a",): Chart("t", "x", "y", [Series("pfbr", [1, 2], [float("nan"), 1 / 3])])}),
        Table("t", "n", ["method"], [["</script><b>"]], ["pfbr"], frozenset({(0, 0)})),
    ],
    figures={},
)


def test_a_page_holds_its_data_and_escapes_what_it_is_told(tmp_path):
    text = write_page(tmp_path / "index.html", PAGE).read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1])
    ((_, chart),) = data["parts"]["part-0"]["charts"]
    assert chart["series"][0]["y"] == [None, 0.33333]  # JSON has no NaN; five digits are enough for a screen
    assert "<h1>A &lt;b&gt; /*DATA*/ &lt;!--BODY--&gt;</h1>" in text  # what looks like a mark is not one
    assert text.count("</script>") == 2
    assert '<li class="bad">lost &lt;/script&gt;</li>' in text
    assert "<strong>" in text


def test_an_index_leads_to_the_pages(tmp_path):
    text = write_index(tmp_path / "index.html", [("lds/index.html", PAGE)]).read_text(encoding="utf-8")
    assert '<a href="lds/index.html">' in text
    assert '<li class="good">won</li>' in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html"]  # nothing half written is left
