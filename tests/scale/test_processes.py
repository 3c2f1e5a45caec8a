"""Several processes on loopback compute what one computes; a training loses one of them and goes on with any number."""

import contextlib
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from pfbr.errors import InputError
from pfbr.scale import launch
from pfbr.scale.processes import join
from tests import four_devices
from tests.conftest import CHEAP_COMPILATION


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def several(root, action, number, folder, *flags):
    """So many processes with an eye on each other's end."""
    environment = os.environ | {"XLA_FLAGS": " ".join(CHEAP_COMPILATION)}
    port = free_port()
    command = [sys.executable, "-m", "tests.scale.one_of_several", action, str(port), str(number)]
    started = [
        subprocess.Popen(
            [*command, str(process), str(folder), *flags],
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(number)
    ]
    try:
        yield started
    finally:
        for one in started:
            if one.poll() is None:
                one.kill()
            one.wait()


def ended(processes) -> list[str]:
    said = [one.communicate(timeout=900) for one in processes]
    assert [one.returncode for one in processes] == [0] * len(processes), "".join(err[-1500:] for _, err in said)
    return [out for out, _ in said]


@pytest.mark.slow
def test_two_processes_give_what_one_gives(root, tmp_path):
    with several(root, "compute", 2, tmp_path) as started:
        ended(started)
    first, second = (dict(np.load(tmp_path / f"found-{process}.npz")) for process in range(2))
    alone = {
        **{f"run/{k}": v for k, v in four_devices.ran(None, four_devices.SYSTEM, "smc").items()},
        **{f"panel/{k}": v for k, v in four_devices.panelled(None, four_devices.SYSTEM, "smc").items()},
    }
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value)
        if value.dtype.kind == "f":
            np.testing.assert_allclose(alone[name], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(alone[name], value)


@pytest.mark.slow
def test_a_training_that_lost_a_process_goes_on_with_any_number(root, tmp_path):
    weights = {}
    for number in (1, 2):
        folder = tmp_path / f"whole-{number}"
        folder.mkdir()
        with several(root, "train", number, folder) as started:
            out = ended(started)
        assert out[0].count("step") == 12
        assert "step" not in "".join(out[1:])  # one tells how it goes
        weights[number] = np.load(folder / "weights-0.npy")
    np.testing.assert_allclose(weights[2], weights[1], atol=1e-5)
    folder = tmp_path / "broken"
    folder.mkdir()
    with several(root, "train", 2, folder, "slow") as started:
        for line in started[0].stdout:
            if line.strip() == "step 5":
                break
        started[1].send_signal(signal.SIGKILL)
        _, said = started[0].communicate(timeout=300)
        assert started[0].returncode != 0
        assert "another process has ended" in said or "connect" in said.lower() or "terminat" in said.lower(), said
    kept = (folder / "run.checkpoint").read_bytes()
    for number in (2, 1, 3):
        (folder / "run.checkpoint").write_bytes(kept)
        with several(root, "train", number, folder, "resume") as started:
            out = ended(started)
        assert next(line for line in out[0].split("\n") if line.startswith("step")) == "step 5"  # kept: step 4
        found = np.load(folder / "weights-0.npy")
        np.testing.assert_allclose(found, weights[1], atol=1e-5)
        if number == 2:  # as many as before the loss
            np.testing.assert_array_equal(found, weights[2])


def test_what_cannot_be_joined_is_refused():
    with pytest.raises(InputError, match="all three"):
        join("127.0.0.1:9")
    with pytest.raises(InputError, match="HOST:PORT"):
        join("here", 2, 0)
    with pytest.raises(InputError, match="below"):
        join("127.0.0.1:9", 2, 2)


def children(*scripts):
    return [subprocess.Popen([sys.executable, "-c", script]) for script in scripts]


def test_if_one_dies_the_others_are_stopped(capsys):
    started = children("import time; time.sleep(60)", "import os; os.kill(os.getpid(), 9)")
    assert launch._watched(started) == 137
    launch._stop(started)
    assert [one.poll() for one in started] == [-signal.SIGTERM, -signal.SIGKILL]
    assert "process 1 of 2 was ended by signal 9" in capsys.readouterr().err


def test_all_that_end_well_are_waited_for(monkeypatch, capsys):
    assert launch._watched(children("pass", "import time; time.sleep(0.3)")) == 0
    monkeypatch.setattr(launch, "MOST_TO_END", 0.2)
    started = children("pass", "import time; time.sleep(60)")
    assert launch._watched(started) == 1
    launch._stop(started)
    assert "did not end with the others" in capsys.readouterr().err
