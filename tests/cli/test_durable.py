"""A live stream that is killed at any moment goes on behind its last answered line, bit for bit."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from pfbr.cli import durable
from pfbr.cli.desk import Desk
from pfbr.cli.durable import DurableDesk
from pfbr.errors import FileError, InputError
from pfbr.io.journal import Journal
from pfbr.models import GaussianMean
from tests.cli.commands import pfbr_command, refused

MODEL = GaussianMean(2, observation_std=1.0)
SETTINGS = {"method": "gaussian", "num_particles": 16, "key": 4}
RANDOM = random.Random(0)
ROWS = [[RANDOM.gauss(0, 1), RANDOM.gauss(0, 1)] for _ in range(9)]
LINES = [json.dumps({"n": n, "observation": row}) for n, row in enumerate(ROWS, start=1)]
LINES[4] = '{"n": 5, "retract": null}'
LINES[6] = json.dumps({"n": 7, "id": "other", "observation": ROWS[6]})


@pytest.fixture(scope="module")
def expected() -> list[dict]:
    desk = Desk(MODEL, SETTINGS)
    return [desk.respond(line, "line")[0] for line in LINES]


def copied(path, to) -> None:
    """The files as a kill would leave them now."""
    to.mkdir()
    for name in (path.name, path.name + ".log"):
        shutil.copy(path.with_name(name), to / name)


def test_after_every_answered_line_the_rest_goes_on_as_if_nothing_had_happened(tmp_path, expected, monkeypatch):
    monkeypatch.setattr(durable, "LINES", 4)
    path = tmp_path / "s"
    desk = DurableDesk(path, MODEL, SETTINGS)
    assert desk.resumed is None
    for done, line in enumerate(LINES):
        assert desk.respond(line, "line")[0] == expected[done]
        copied(path, tmp_path / f"killed-{done}")
    assert path.with_name("s.log").stat().st_size < 4 * 200  # it was emptied on the way
    desk.close()
    for done in (0, 3, 4, 6, 8):  # behind: the first, a saved one, a retraction, another stream, the last
        again = DurableDesk(tmp_path / f"killed-{done}" / "s", MODEL, SETTINGS)
        assert f"highest number so far is {done + 1}" in again.resumed
        assert again.respond(LINES[done], "line")[0] == expected[done] | {"again": True}  # sent again, not counted
        for later in range(done + 1, len(LINES)):
            assert again.respond(LINES[later], "line")[0] == expected[later]
        again.close()


def test_a_kill_between_saving_and_emptying_the_log_counts_no_line_twice(tmp_path, expected, monkeypatch):
    monkeypatch.setattr(durable, "LINES", 3)
    desk = DurableDesk(tmp_path / "s", MODEL, SETTINGS)
    monkeypatch.setattr(Journal, "clear", lambda self: None)
    for line in LINES[:3]:
        desk.respond(line, "line")
    copied(tmp_path / "s", tmp_path / "killed")
    monkeypatch.undo()
    again = DurableDesk(tmp_path / "killed" / "s", MODEL, SETTINGS)
    assert again.respond(LINES[3], "line")[0] == expected[3]


def test_bad_lines_and_questions_are_not_kept(tmp_path):
    desk = DurableDesk(tmp_path / "s", MODEL, SETTINGS)
    with pytest.raises(InputError):
        desk.respond("[1]", "line")
    desk.respond('{"predict": 2}', "line")
    assert (tmp_path / "s.log").stat().st_size == 0
    desk.close()


def test_a_state_that_cannot_be_gone_on_with_is_refused(tmp_path):
    path = tmp_path / "s"
    desk = DurableDesk(path, MODEL, SETTINGS)
    desk.respond(LINES[0], "line")
    with pytest.raises(FileError, match="another process is using"):
        DurableDesk(path, MODEL, SETTINGS)
    desk.close()
    with pytest.raises(InputError, match="--particles 16, and this is 32"):
        DurableDesk(path, MODEL, SETTINGS | {"num_particles": 32})
    with pytest.raises(InputError, match="`log_likelihood` is"):
        DurableDesk(path, GaussianMean(2, observation_std=1.5), SETTINGS)
    DurableDesk(path, MODEL, SETTINGS).close()  # a refusal lets go of the lock
    (tmp_path / "s.log").write_bytes(b"")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileError, match="checksum"):
        DurableDesk(path, MODEL, SETTINGS)


def test_a_full_disk_ends_the_stream_before_the_answer(tmp_path, monkeypatch):
    desk = DurableDesk(tmp_path / "s", MODEL, SETTINGS)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FileError, match=r"No space left.*was not answered"):
        desk.respond(LINES[0], "line")
    monkeypatch.undo()
    desk._journal.close()
    again = DurableDesk(tmp_path / "s", MODEL, SETTINGS)
    assert again.respond(LINES[0], "line")[0]["stage"] == 1
    again.close()


def test_the_command_says_what_it_needs(tmp_path):
    refused(pfbr_command("infer", "gaussian-mean:dim=2", "rows.csv", "--out", "o.npz", "--state", "s"), "`-`")


class Process:
    """`pfbr infer … - --state FILE`, to be asked line by line, and killed."""

    def __init__(self, path):
        words = ["infer", "gaussian-mean:dim=2,observation_std=1", "-", "--method", "gaussian", "--particles", "16"]
        command = [sys.executable, "-c", "from pfbr.cli.start import main; main()", *words, "--seed", "4"]
        self.process = subprocess.Popen(
            [*command, "--state", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def send(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def killed_at_random(path, expected, kills: int, rng: random.Random) -> None:
    """Send every line until it is answered; kill the process so many times, at random moments behind a sent line."""
    moments = sorted(rng.sample(range(1, len(LINES)), kills)) if kills < len(LINES) else list(range(len(LINES)))
    process = Process(path)
    for number, line in enumerate(LINES):
        process.send(line)
        if number in moments:
            if rng.random() < 0.5:
                process.answer()  # answered, and killed before the next
            time.sleep(0.02 * rng.random())
            process.kill()
            process = Process(path)
            process.send(line)  # nobody knows whether it was counted
        said = process.answer()
        said.pop("again", None)
        assert said == expected[number]
    process.kill()


def test_a_process_that_is_killed_goes_on_with_the_next_line(tmp_path, expected):
    killed_at_random(tmp_path / "s", expected, 1, random.Random(1))


@pytest.mark.slow
def test_a_process_that_is_killed_at_every_line_goes_on(tmp_path, expected):
    for seed in range(3):
        killed_at_random(tmp_path / f"s{seed}", expected, len(LINES), random.Random(seed))
