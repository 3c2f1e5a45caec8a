"""`pfbr data`: a prepared stream, and a sheet to look at."""

from typer.testing import CliRunner

from pfbr.cli import app
from pfbr.paper.digits import open_stream


def test_the_command_prepares_and_draws_a_sheet(tmp_path):
    runner = CliRunner()
    done = runner.invoke(app, ["data", "mnist8m", "--out", str(tmp_path / "m"), "--variants", "1", "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "11,769 images" in done.output
    assert open_stream(tmp_path / "m").features(0).shape == (11769, 50)
    assert (tmp_path / "m" / "sheet.png").stat().st_size > 10_000
    wrong = runner.invoke(app, ["data", "cifar", "--out", str(tmp_path / "c")])
    assert wrong.exit_code == 2
    assert "there is no data set 'cifar'" in wrong.output
