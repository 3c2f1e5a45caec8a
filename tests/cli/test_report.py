"""`pfbr report` draws again from records alone."""

from tests.cli.commands import pfbr_command, refused


def test_it_draws_the_page_again_from_records_alone(demo_directory, tmp_path):
    for name in ("two-modes.json", "two-modes.npz"):
        (tmp_path / name).write_bytes((demo_directory / name).read_bytes())
    result = pfbr_command("report", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "index.html")
    for name in ("index.html", "demo.png", "demo.svg"):
        assert (tmp_path / name).read_bytes() == (demo_directory / name).read_bytes()


def test_it_refuses_a_folder_without_records(tmp_path, demo_directory):
    refused(pfbr_command("report", tmp_path), "holds no records")
    (tmp_path / "two-modes.json").write_bytes((demo_directory / "two-modes.json").read_bytes())
    (tmp_path / "two-modes.npz").write_bytes((demo_directory / "two-modes.npz").read_bytes()[:1000])
    refused(pfbr_command("report", tmp_path), "damaged or cut short")
