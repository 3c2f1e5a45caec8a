"""`pfbr demo`: its tables, and the path of its page."""

import functools

import pytest

import pfbr
from pfbr.judging import demo
from tests.cli.commands import pfbr_command


def shown(tmp_path) -> None:
    result = pfbr_command("demo", "--out", tmp_path / "page", env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    for words in ("exact draws", "pfbr", "one-pass SMC", "prior", "near (1, -2)", "near (-1, 2)", "ms"):
        assert words in result.stdout
    page = tmp_path / "page" / "index.html"
    assert result.stdout.strip().endswith(str(page))
    assert page.stat().st_size < 3_000_000


def test_it_prints_its_tables_and_ends_with_the_path_of_the_page(tmp_path, monkeypatch, demo_settings, demo_directory):
    """With the operator that the demonstration of the other tests was compiled for."""
    run = demo.run

    def with_another(method, **options):
        assert method == "mixture"
        return run(pfbr.gaussian_operator(), settings=demo_settings, **options)

    monkeypatch.setattr(demo, "run", with_another)
    shown(tmp_path)


@pytest.mark.slow
def test_it_demonstrates_the_pretrained_operator(tmp_path, monkeypatch, demo_settings):
    """On a stream shorter than the real one's."""
    monkeypatch.setattr(demo, "run", functools.partial(demo.run, settings=demo_settings))
    shown(tmp_path)
