"""`pfbr show` prints how an operator was made, and refuses files that hold none."""

import json

from tests.cli.commands import pfbr_command, refused


def test_it_shows_the_header(trained):
    file, _ = trained
    header = json.loads(pfbr_command("show", file).stdout)
    assert header["settings"]["steps"] == 2
    assert header["model"].endswith("GaussianMean")


def test_damaged_files_are_refused(tmp_path, trained):
    file, _ = trained
    cut = tmp_path / "cut.pfbr"
    cut.write_bytes(file.read_bytes()[:-10])
    refused(pfbr_command("show", cut), "cut short")
    refused(pfbr_command("show", tmp_path / "none.pfbr"), "none.pfbr")
