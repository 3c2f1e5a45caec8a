"""A live stream: every line is answered, bad ones change nothing, and a file gives the same particles."""

import io
import json

import numpy as np
import pytest

from pfbr.cli.desk import Desk
from pfbr.cli.live import answer
from pfbr.models import GaussianMean
from tests.cli.commands import pfbr_command, written
from tests.cli.test_infer import DRIFT, FILTER, NAMED, load

SPEC = "gaussian-mean:dim=2,observation_std=1"


def live(*words, lines: list[str], **options) -> list[dict]:
    result = pfbr_command("infer", *words, "-", *options.get("more", ()), input="\n".join(lines) + "\n")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_it_answers_every_line_and_survives_bad_ones(tmp_path, stream):
    good = [json.dumps(row) for row in stream.tolist()]
    bad = ["[1]", "nonsense", '["a", 2]', "[Infinity, 1]", "9" * 5000, "[" * 3000, '{"observation": [1, 2], "tme": 3}']
    lines = [good[0], *bad, good[1], "", good[2], good[0], '{"retract": null}']
    out = tmp_path / "live.npz"
    options = ("--method", "gaussian", "--particles", 16)
    answers = live(SPEC, lines=lines, more=(*options, "--out", out))
    assert list(answers[0]) == ["stage", "mean", "std", "covariance", "info"]
    assert [a.get("stage") for a in answers] == [1, *[None] * len(bad), 2, 3, 4, 3]
    assert [a["line"] for a in answers if "error" in a] == list(range(2, 2 + len(bad)))
    assert answers[-1]["mean"] == answers[-3]["mean"]  # the fourth was taken back
    expected = live(SPEC, lines=good[:3], more=options)
    assert [a for a in answers[:-2] if "error" not in a] == expected  # bad lines changed nothing
    held = load(out)
    assert held["particles"].shape == (3, 16, 2)
    np.testing.assert_allclose(held["mean"], [a["mean"] for a in expected], rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(held["covariance"][:, 0, 0]), [a["std"][0] for a in expected], rtol=1e-5)


@pytest.mark.parametrize("method", ["gaussian", pytest.param("auto", marks=pytest.mark.slow)])
def test_one_seed_gives_the_same_particles_from_a_file_and_live(tmp_path, stream, method):
    """And the same words and numbers about each step."""
    lines = [json.dumps(row) for row in stream.tolist()]
    lines.insert(2, "null")
    data = written(tmp_path / "stream.jsonl", "\n".join(lines))
    options = ("--particles", 16, "--seed", 7, *(() if method == "auto" else ("--method", method)))
    answers = live(SPEC, lines=lines, more=(*options, "--out", tmp_path / "live.npz"))
    result = pfbr_command("infer", SPEC, data, *options, "--out", tmp_path / "file.npz")
    assert result.exit_code == 0, result.output
    from_file, from_lines = load(tmp_path / "file.npz"), load(tmp_path / "live.npz")
    assert from_file.keys() == from_lines.keys()
    for name, values in from_file.items():
        if name != "move":
            np.testing.assert_allclose(from_lines[name], values, atol=1e-4, rtol=1e-4, err_msg=name)
    for stage, said in enumerate(answers):
        for name, value in said["info"].items():
            held = from_file[name][stage]
            if name == "move" or value is None:  # JSON has no word for NaN
                assert value == (held if name == "move" else None)
            else:
                assert value == pytest.approx(held, abs=1e-3), name
    if method == "auto":
        assert {"ess", "log_evidence", "log_predictive", "flagged", "move"} <= answers[0]["info"].keys()
        assert set(from_file["move"]) <= {"none", "weighed", "flow", "tempered", "second look"}
        assert f"log evidence {from_file['log_evidence'][-1]:.2f}" in result.stderr
        assert "of 6 steps flagged" in result.stderr


def test_times_inputs_and_gaps_come_with_the_lines(tmp_path):
    model = f"{written(tmp_path / 'drift.py', DRIFT)}:model"
    lines = [
        '{"observation": 0.3, "time": 1.5, "inputs": {"push": 1}}',
        '{"observation": [0.3], "time": -0.5, "inputs": {"push": 1}}',  # before the start
        '{"observation": [0.3], "time": 2}',  # without inputs
        '{"observation": null, "time": 1.5, "inputs": {"push": 1}}',
        '{"observation": [0.4], "inputs": {"push": 1}}',
    ]
    answers = live(model, lines=lines, more=FILTER)
    assert [("error" in a) for a in answers] == [False, True, True, False, False]
    assert answers[3]["info"]["log_evidence"] == answers[0]["info"]["log_evidence"]  # nothing was seen
    assert "inputs" in answers[2]["error"]
    named = live(
        model,
        lines=['{"y": 0.3, "t": 1.5, "push": {"push": 1}}'],
        more=(*FILTER, "--time", "t", "--inputs", "push"),
    )
    assert named[0]["mean"] == answers[0]["mean"]


def test_named_unknowns_are_answered_by_name(tmp_path):
    model = f"{written(tmp_path / 'scale.py', NAMED)}:model"
    said = live(model, lines=["[1, 2]", "[null, 1]"], more=("--method", "prior", "--particles", 32))
    assert set(said[1]["mean"]) == set(said[1]["std"]) == {"mu", "sigma"}
    assert len(said[1]["mean"]["mu"]) == 2
    assert said[1]["mean"]["sigma"] > 0


def test_an_earlier_observation_is_taken_back(stream):
    lines = [json.dumps(row) for row in stream.tolist()[:2]]
    answers = live(SPEC, lines=[*lines, f'{{"retract": {lines[0]}}}'], more=("--method", "gaussian", "--particles", 16))
    alone = live(SPEC, lines=lines[1:], more=("--method", "gaussian", "--particles", 16))
    assert answers[2]["stage"] == 1
    np.testing.assert_allclose(answers[2]["mean"], alone[0]["mean"], atol=0.02)


class Gone(io.StringIO):
    """Nobody reads any more."""

    def flush(self):
        raise BrokenPipeError


def test_what_was_kept_survives_the_end_of_the_reader_and_ctrl_c(stream):
    settings = {"method": "gaussian", "num_particles": 16, "key": 0}
    desk = Desk(GaussianMean(2, 1.0, 1.0), settings)
    rows = [json.dumps(row) for row in stream.tolist()]
    assert len(answer(desk, rows, Gone(), keep=True)["mean"]) == 1

    def interrupted():
        yield from rows[:2]
        raise KeyboardInterrupt

    assert len(answer(desk, interrupted(), io.StringIO(), keep=True)["mean"]) == 2
    assert answer(desk, [], io.StringIO(), keep=True) is None


def test_bytes_that_are_no_text_are_a_bad_line():
    result = pfbr_command("infer", SPEC, "-", "--method", "gaussian", "--particles", 16, input=b"\xff\xfe\n[1, 2]\n")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [("error" in a) for a in answers] == [True, False]
