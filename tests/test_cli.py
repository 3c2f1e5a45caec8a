"""The commands: what they write, what they print, and how they refuse; nothing is ever half written."""

import functools
import json
import subprocess
import sys

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import pfbr
from pfbr.cli import app
from pfbr.judging import demo
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean
from pfbr.models.simulate import simulate

SPEC, MODEL = "gaussian-mean:dim=2,observation_std=1", GaussianMean(2, 1.0, 1.0)
SMALL_TRAINING = ("gaussian-mean:dim=1", "--operator", "paper", "--steps", 2, "--particles", 8)  # soonest to compile
COMMANDS = ["demo", "train", "infer", "compare", "bench", "show", "report"]


@pytest.fixture(scope="module")
def stream() -> np.ndarray:
    return np.asarray(simulate(jax.random.key(3), MODEL, 5).observations)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An operator from two steps of training, and what the command said."""
    file = tmp_path_factory.mktemp("trained") / "operator.pfbr"
    result = pfbr_command("train", *SMALL_TRAINING, "--out", file)
    assert result.exit_code == 0, result.output
    return file, result


def pfbr_command(*words, **options):
    return CliRunner().invoke(app, [str(word) for word in words], **options)


def refused(result, *said: str) -> None:
    """Exit status 2, one line on stderr that says what is wrong, no traceback."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    for words in said:
        assert words in lines[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example(command):
    result = pfbr_command(command, "--help", env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert result.exit_code == 0
    assert f"pfbr {command}" in result.output.split("Usage:")[1].split("\n", 1)[1]  # an example, beside the usage


def test_version():
    assert pfbr_command("--version").output == f"pfbr {pfbr.__version__}\n"


def test_infer_writes_the_posterior_after_every_observation(tmp_path, stream):
    np.save(tmp_path / "stream.npy", stream)
    out = tmp_path / "posterior.npz"
    result = pfbr_command("infer", "gaussian", SPEC, tmp_path / "stream.npy", "--out", out, "--particles", 256)
    assert result.exit_code == 0, result.output
    with np.load(out) as held:
        truth = kalman(MODEL, stream)
        assert held["particles"].shape == (5, 256, 2)
        assert held["log_density"].shape == held["weights"].shape == (5, 256)
        # The prior's particles are drawn evenly with the right moments, and the flow is exact here.
        np.testing.assert_allclose(held["mean"], truth.mean, atol=0.02)
        np.testing.assert_allclose(held["covariance"], truth.cov, atol=0.02)


def test_infer_runs_many_streams_and_repeats_itself(tmp_path, stream):
    np.save(tmp_path / "many.npy", np.stack([stream, stream[::-1], -stream]))
    answers = []
    for name in ("a.npz", "b.npz"):
        words = ("infer", "gaussian", SPEC, tmp_path / "many.npy", "--out", tmp_path / name, "--particles", 16)
        assert pfbr_command(*words, "--seed", 5).exit_code == 0
        with np.load(tmp_path / name) as held:
            answers.append({key: held[key] for key in held.files})
    assert answers[0]["particles"].shape == (3, 5, 16, 2)
    assert answers[0]["mean"].shape == (3, 5, 2)
    for key in answers[0]:
        np.testing.assert_array_equal(answers[0][key], answers[1][key])


def test_a_live_stream_answers_every_line_and_survives_bad_ones(tmp_path, stream):
    good = [json.dumps(row) for row in stream.tolist()]
    bad = ["[1]", "nonsense", '["a", 2]', "[NaN, 1]"]
    lines = [good[0], *bad, good[1], "", good[2], good[0], '{"retract": null}']
    out = tmp_path / "live.npz"
    words = ("infer", "gaussian", SPEC, "-", "--particles", 16)
    result = pfbr_command(*words, "--out", out, input="\n".join(lines) + "\n")
    assert result.exit_code == 0, result.output
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [a.get("stage") for a in answers] == [1, None, None, None, None, 2, 3, 4, 3]
    assert [a["line"] for a in answers if "error" in a] == [2, 3, 4, 5]
    assert answers[-1]["mean"] == answers[-3]["mean"]  # the fourth was taken back
    undisturbed = pfbr_command(*words, input="\n".join(good[:3]) + "\n")
    expected = [json.loads(line) for line in undisturbed.stdout.splitlines()]
    assert [a for a in answers[:-2] if "error" not in a] == expected  # bad lines changed nothing
    with np.load(out) as held:
        assert held["particles"].shape == (3, 16, 2)
        np.testing.assert_allclose(held["mean"], [a["mean"] for a in expected], rtol=1e-6)
        np.testing.assert_allclose(np.sqrt(held["covariance"][:, 0, 0]), [a["std"][0] for a in expected], rtol=1e-5)


def test_infer_refuses_and_leaves_nothing_behind(tmp_path, stream):
    np.save(tmp_path / "stream.npy", stream)
    (tmp_path / "cut.csv").write_text("1,2\n3")
    (tmp_path / "foreign.pfbr").write_bytes(b"\x00\x01 not ours")
    before = sorted(tmp_path.iterdir())
    good, out = tmp_path / "stream.npy", tmp_path / "out.npz"
    refused(pfbr_command("infer", "gaussian", "gausian-mean", good, "--out", out), "Did you mean 'gaussian-mean'?")
    refused(pfbr_command("infer", "gaussian", SPEC, tmp_path / "none.npy", "--out", out), "there is no file")
    refused(pfbr_command("infer", "gaussian", SPEC, tmp_path / "cut.csv", "--out", out), "line 2")
    refused(pfbr_command("infer", "gaussian", "gaussian-mean:dim=3", good, "--out", out), "(T, 3)")
    refused(pfbr_command("infer", tmp_path / "none.pfbr", SPEC, good, "--out", out), "none.pfbr")
    refused(pfbr_command("infer", tmp_path / "foreign.pfbr", SPEC, good, "--out", out), "foreign.pfbr")
    refused(pfbr_command("infer", "gaussian", SPEC, good), "--out FILE.npz is needed")
    refused(pfbr_command("infer", "gaussian", SPEC, good, "--out", tmp_path / "out.txt"), ".npz")
    refused(pfbr_command("infer", "gaussian", SPEC, good, "--out", tmp_path / "no" / "out.npz"), "no directory")
    assert pfbr_command("infer", "gaussian", SPEC, good, "--out", out, "--particles", 1).exit_code == 2
    assert sorted(tmp_path.iterdir()) == before


def test_a_failed_run_keeps_the_older_answer(tmp_path, stream):
    np.save(tmp_path / "stream.npy", stream)
    out = tmp_path / "out.npz"
    out.write_bytes(b"older answer")
    model = tmp_path / "impossible.py"
    model.write_text(
        "from jax import numpy as jnp\n"
        "from pfbr.models import GaussianMean\n"
        "class Impossible(GaussianMean):\n"
        "    def log_likelihood(self, x, observation):\n"
        "        return jnp.nan * jnp.sum(x)\n"
        "model = Impossible(2)\n"
    )
    words = ("infer", "gaussian", f"{model}:model", tmp_path / "stream.npy", "--out", out, "--particles", 8)
    refused(pfbr_command(*words), "observation 1")
    assert out.read_bytes() == b"older answer"


def test_train_writes_an_operator_that_infer_uses(tmp_path, trained):
    file, result = trained
    assert "2 steps" in result.stderr
    assert [path.name for path in file.parent.iterdir()] == [file.name]  # the checkpoint is gone
    header = json.loads(pfbr_command("show", file).stdout)
    assert header["steps"] == 2
    assert header["settings"]["num_particles"] == 8
    (tmp_path / "stream.csv").write_text("0.5\n1.5\n")
    words = ("infer", file, "gaussian-mean:dim=1", tmp_path / "stream.csv", "--out", tmp_path / "out.npz")
    assert pfbr_command(*words, "--particles", 32).exit_code == 0
    with np.load(tmp_path / "out.npz") as held:
        assert held["particles"].shape == (2, 32, 1)


def test_an_interrupted_training_keeps_the_best_so_far(tmp_path, trained, monkeypatch):
    def interrupt(report):
        if report.step == 2:
            raise KeyboardInterrupt

    # `pfbr.cli.train` is the command; the file of that name is found here
    monkeypatch.setattr(sys.modules["pfbr.cli.train"], "text_bar", lambda: interrupt)
    out = tmp_path / "early.pfbr"
    result = pfbr_command("train", *SMALL_TRAINING, "--out", out)
    assert result.exit_code == 0, result.output
    assert "stopped early" in result.stderr
    assert pfbr.read_header(out)["steps"] == 1
    pfbr.load(out)


def test_a_training_interrupted_at_once_leaves_nothing(tmp_path, trained, monkeypatch):
    def interrupt(report):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["pfbr.cli.train"], "text_bar", lambda: interrupt)
    out = tmp_path / "early.pfbr"
    result = pfbr_command("train", *SMALL_TRAINING, "--out", out)
    assert result.exit_code == 130
    assert "nothing to keep" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_train_refuses_before_it_works(tmp_path, trained):
    file, _ = trained
    out = tmp_path / "out.pfbr"
    refused(pfbr_command("train", "nothing", "--out", out), "Built in")
    refused(pfbr_command("train", SPEC, "--out", tmp_path / "out.bin"), ".pfbr")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 0), "must be positive; got 0")
    refused(pfbr_command("train", SPEC, "--out", out, "--minutes", -1), "must be positive")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 1, "--operator", "papre"), "papre")
    refused(pfbr_command("train", SPEC, "--out", out, "--steps", 1, "--resume"), "out.pfbr.checkpoint")
    cut = tmp_path / "cut.pfbr"
    cut.write_bytes(file.read_bytes()[:-10])
    refused(pfbr_command("show", cut), "cut short")
    refused(pfbr_command("show", tmp_path / "none.pfbr"), "none.pfbr")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.pfbr"]


def test_report_draws_the_page_again_from_records_alone(demo_directory, tmp_path):
    for name in ("demo.json", "demo.npz"):
        (tmp_path / name).write_bytes((demo_directory / name).read_bytes())
    result = pfbr_command("report", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "index.html")
    for name in ("index.html", "demo.png", "demo.svg"):
        assert (tmp_path / name).read_bytes() == (demo_directory / name).read_bytes()


def test_compare_leaves_records_from_which_report_draws(tmp_path, stream):
    np.save(tmp_path / "stream.npy", stream)
    out = tmp_path / "runs"
    words = ("compare", SPEC, tmp_path / "stream.npy", "--methods", "prior", "--operator", "gaussian")
    result = pfbr_command(*words, "--particles", 32, "--out", out, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    for words in ("prior", "pfbr"):
        assert words in result.stdout
    (out / "scores.png").unlink()
    again = pfbr_command("report", out)
    assert again.stdout.strip() == str(out / "scores.png")
    assert (out / "scores.png").exists()


def test_report_refuses_a_folder_without_records(tmp_path, demo_directory):
    refused(pfbr_command("report", tmp_path), "holds no records")
    (tmp_path / "demo.json").write_bytes((demo_directory / "demo.json").read_bytes())
    (tmp_path / "demo.npz").write_bytes((demo_directory / "demo.npz").read_bytes()[:1000])
    refused(pfbr_command("report", tmp_path), "damaged or cut short")


def test_the_installed_program_ends_with_status_two_and_one_line():
    words = [sys.executable, "-c", "from pfbr.cli import app; app()", "show", "no-such-file.pfbr"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr


def test_demo_prints_its_tables_and_ends_with_the_path_of_the_page(tmp_path, monkeypatch, demo_settings):
    """With the shipped operator, on a stream shorter than the real one's."""
    monkeypatch.setattr(demo, "run", functools.partial(demo.run, settings=demo_settings))
    result = pfbr_command("demo", "--out", tmp_path / "page", env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    for words in ("exact draws", "pfbr", "one-pass SMC", "never learning", "near (1, -2)", "near (-1, 2)", "ms"):
        assert words in result.stdout
    page = tmp_path / "page" / "index.html"
    assert result.stdout.strip().endswith(str(page))
    assert page.stat().st_size < 3_000_000
