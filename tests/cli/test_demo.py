"""`pfbr demo`: its tables, and the path of its page."""

import functools

from pfbr.judging import demo
from tests.cli.commands import pfbr_command


def test_it_prints_its_tables_and_ends_with_the_path_of_the_page(tmp_path, monkeypatch, demo_settings):
    """With the pretrained operator, on a stream shorter than the real one's."""
    monkeypatch.setattr(demo, "run", functools.partial(demo.run, settings=demo_settings))
    result = pfbr_command("demo", "--out", tmp_path / "page", env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    for words in ("exact draws", "pfbr", "one-pass SMC", "prior", "near (1, -2)", "near (-1, 2)", "ms"):
        assert words in result.stdout
    page = tmp_path / "page" / "index.html"
    assert result.stdout.strip().endswith(str(page))
    assert page.stat().st_size < 3_000_000
