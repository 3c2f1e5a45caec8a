"""`pfbr calibrate` writes records and a page, from which the page can be drawn again."""

import pytest

from pfbr.judging.calibration.calibrate import Calibration
from tests.cli.commands import pfbr_command, refused


def test_it_writes_records_and_a_page(tmp_path):
    out = tmp_path / "c"
    size = ("--streams", 40, "--length", 3, "--particles", 32)
    result = pfbr_command("calibrate", "gaussian-mean:dim=1", "--method", "gaussian", *size, "--out", out)
    assert result.exit_code == 0, result.output
    record = Calibration.load(out)
    assert record.arrays["ranks"].shape == (40, 3, 2)
    page = (out / "index.html").read_text(encoding="utf-8")
    assert record.verdict in page
    assert "gaussian on gaussian-mean:dim=1" in page
    assert "--method gaussian --streams 40 --length 3 --particles 32 --seed 0" in record.settings["command"]
    (out / "index.html").unlink()
    assert pfbr_command("report", out).exit_code == 0
    assert (out / "index.html").read_text(encoding="utf-8") == page
    (out / "calibration.npz").write_bytes((out / "calibration.npz").read_bytes()[:500])
    refused(pfbr_command("report", out), "damaged")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("gaussian-mean --out file", "is a file"),
        ("gaussian-mean:dim=3 --method mixture --out c", "mixture"),
        ("gaussian-mean --out c --streams 5", "at least 20"),
        ("gaussian-mean --method nobody.pfbr --out c", "nobody.pfbr"),
    ],
)
def test_it_refuses_in_one_line(tmp_path, words, expected):
    (tmp_path / "file").write_text("")
    placed = [str(tmp_path / word) if word in ("file", "c") else word for word in words.split()]
    refused(pfbr_command("calibrate", *placed), expected)
    assert not (tmp_path / "c").exists()
