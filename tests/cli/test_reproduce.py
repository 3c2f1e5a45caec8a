"""`pfbr reproduce`: bad files are refused in one line, and a user's own system runs to the end."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pfbr.cli import app


def test_bad_files_are_refused_in_one_line_before_the_work(tmp_path):
    def refused(*options: str) -> str:
        answer = CliRunner().invoke(app, ["reproduce", *options, "--out", str(tmp_path / "out")])
        assert answer.exit_code == 2, answer.output
        assert not (tmp_path / "out").exists()
        return " ".join(answer.stderr.split())

    system, streams = tmp_path / "system.npz", tmp_path / "streams.npy"
    np.savez(system, A=np.eye(2))
    assert "lacks B" in refused("lds", "--system", str(system))
    assert "no file" in refused("lds", "--system", str(tmp_path / "none.npz"))
    system.write_bytes(b"not a file of arrays")
    assert "cannot be read as .npz" in refused("lds", "--system", str(system))
    np.savez(system, A=np.eye(2), B=np.ones((3, 2)))
    np.save(streams, np.zeros((4, 5, 2)))
    assert "3" in refused("lds", "--system", str(system), "--observations", str(streams))  # three values, not two
    np.save(streams, np.full((5, 2), np.nan))
    assert "nan" in refused("lds", "--observations", str(streams))
    assert "for lds and table1" in refused("mixture", "--observations", str(streams))
    assert "no experiment" in refused("lsd")
    assert "differ" in refused("all", "--observations", str(streams))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lds", "table1"])
def test_a_users_own_system_and_streams_run_to_the_end(tmp_path, name):
    """Three unknowns seen through two values: what must be trained is trained for this system."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "mine.npz", A=0.5 * np.eye(3), B=rng.standard_normal((2, 3)), observation_std=0.5)
    np.save(tmp_path / "streams.npy", rng.standard_normal((3, 6, 2)))
    own = ["--system", str(tmp_path / "mine.npz"), "--observations", str(tmp_path / "streams.npy")]
    out = tmp_path / "out"
    answer = CliRunner().invoke(app, ["reproduce", name, "--quick", "--out", str(out), *own])
    assert answer.exit_code == 0, answer.output
    assert json.loads((out / "records/system/settings.json").read_text())["dim"] == 3
    assert "in 3 dimensions" in (out / "index.html").read_text()
    assert (out / "operators/lds-3-paper.pfbr").is_file()
