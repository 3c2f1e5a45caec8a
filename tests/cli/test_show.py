"""`pfbr show` prints how an operator was made, and refuses files that hold none."""

import json

import pytest

import pfbr
from tests.cli.commands import pfbr_command, refused


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "operator.pfbr"
    pfbr.save(path, pfbr.pretrained("static-2d"))
    return path


def test_it_shows_the_header(file):
    header = json.loads(pfbr_command("show", file).stdout)
    assert header == pfbr.read_header(file)
    assert {"steps", "settings", "model", "version", "history", "validation_score"} <= header.keys()


def test_damaged_files_are_refused(tmp_path, file):
    cut = tmp_path / "cut.pfbr"
    cut.write_bytes(file.read_bytes()[:-10])
    refused(pfbr_command("show", cut), "cut short")
    refused(pfbr_command("show", tmp_path / "none.pfbr"), "none.pfbr")
