"""`pfbr export` writes a step with its loader, and says what it wrote."""

import json

from tests.cli.commands import pfbr_command, refused


def test_it_writes_a_step_and_its_loader(tmp_path):
    out = tmp_path / "step"
    said = pfbr_command("export", "gaussian-mean", "--method", "prior", "--particles", 8, "--out", out)
    assert said.exit_code == 0, said.output
    assert "8 particles" in said.stdout
    assert sorted(path.name for path in out.iterdir()) == ["pfbr_step.py", "start.bin", "step.bin", "step.json"]
    assert json.loads((out / "step.json").read_text())["particles"] == 8


def test_it_refuses_and_leaves_nothing_behind(tmp_path):
    refused(pfbr_command("export", "gaussian-mean", "--platforms", "abacus", "--out", tmp_path / "a"), "`platforms`")
    refused(pfbr_command("export", "no-such-model", "--out", tmp_path / "a"), "no-such-model")
    assert not list(tmp_path.rglob("*.bin"))
