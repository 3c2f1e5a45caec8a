"""Full disks, places that cannot be written to, processes that meet, and signals."""

import contextlib
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pfbr
from pfbr.errors import FileError
from pfbr.inference.pretrained import pretrained
from pfbr.io import containers, files
from pfbr.io.records import Measurement, Records, write_arrays, write_npz
from pfbr.training.state import write_state
from tests.attack.case import Case, contents
from tests.attack.operator_files import IDENTITY, STATE

GROUP = "disk and signals"
SPEC = "gaussian-mean:dim=2"
LARGE = np.arange(10_000.0)


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process can grow beyond `size` bytes: writing more is an error, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def _figure(path: Path) -> None:
    from matplotlib.figure import Figure

    from pfbr.reporting.figures import save_figure

    figure = Figure(figsize=(8, 6))
    figure.subplots().plot(np.random.default_rng(0).normal(size=2000))
    save_figure(figure, path)


def _records(path: Path) -> None:
    Records(path.parent).add([Measurement("m" * 200, "score", stage, 1.0) for stage in range(1000)])


# Everything that is written, each by the function that writes it: (the file, how).
WRITERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "bytes": ("a.bin", lambda p: files.write_bytes(p, bytes(100_000))),
    "text": ("a.txt", lambda p: files.write_text(p, "x" * 100_000)),
    "JSON": ("a.json", lambda p: files.write_json(p, list(range(20_000)))),
    "arrays": ("a.npz", lambda p: write_npz(p, {"a": LARGE})),
    "arrays, compressed": (
        "a.npz",
        lambda p: write_npz(p, {"a": np.random.default_rng(0).normal(size=9999)}, compressed=True),
    ),
    "a record": (
        "demo.npz",
        lambda p: write_arrays(p.parent, "demo", {"a": 1}, {"a": np.random.default_rng(0).normal(size=9999)}),
    ),
    "an operator": ("a.pfbr", lambda p: pfbr.save(p, pretrained("mixture"))),
    "a checkpoint": ("a.checkpoint", lambda p: write_state(p, STATE._replace(operator=LARGE), IDENTITY)),
    "a container": ("a.pfbr", lambda p: containers.write(p, "session", {}, {"a": LARGE})),
    "a figure as PNG": ("a.png", _figure),
    "a figure as SVG": ("a.svg", _figure),
}
PLACES = (
    "a directory where the file should be",
    "a read-only directory",
    "no directory",
    "a name too long",
    "/dev/full",
)


def _full(name: str, size: int) -> Callable[[Path], None]:
    """A disk that is full after `size` bytes, with an old file in place: an error of one line, and the old file."""
    file, write = WRITERS[name]

    def check(directory: Path) -> None:
        (directory / file).write_bytes(b"old")
        before = contents(directory)
        with room_for(size):
            _refused(lambda: write(directory / file), file)
        assert contents(directory) == before, f"left behind: {sorted(contents(directory))}"

    return check


def _full_records(size: int) -> Callable[[Path], None]:
    """Lines that no longer fit are cut off before going on: what is there is whole."""

    def check(directory: Path) -> None:
        Records(directory, {"a": 1}).add([Measurement("m", "score", 0, 1.0)])
        with room_for(size):
            _refused(lambda: _records(directory / "measurements.jsonl"), "measurements")
        whole = Records(directory).measurements()
        assert whole[0] == Measurement("m", "score", 0, 1.0)

    return check


def _place(name: str, place: str) -> Callable[[Path], None]:
    file, write = WRITERS[name]

    def check(directory: Path) -> None:
        path = directory / file
        if place == PLACES[0]:
            path.mkdir()
        elif place == PLACES[1]:
            (directory / "locked").mkdir(mode=0o500)
            path = directory / "locked" / file
            if os.geteuid() == 0:  # root may write anywhere but here
                path = Path("/proc/self") / file
        elif place == PLACES[2]:
            path = directory / "no" / "where" / file
        elif place == PLACES[3]:
            path = directory / ("n" * 300 + file)
        else:
            path.symlink_to("/dev/full")
        if name == "a record":
            path = path.parent / "demo.npz"
        before = contents(directory)
        _refused(lambda: write(path), "")
        assert contents(directory) == before, f"left behind: {sorted(contents(directory))}"
        if place == PLACES[1]:
            (directory / "locked").chmod(0o700)

    return check


def _refused(attempt: Callable[[], Any], says: str) -> None:
    try:
        attempt()
    except FileError as error:
        assert "\n" not in str(error), "more than a line"
        assert says in str(error), f"does not name {says}: {error}"
        assert len(str(error)) < 900, "too long"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of an error of ours: {error}") from error
    else:
        raise AssertionError("no error at all")


# ------------------------------------------------------------------ processes


def start(*words: Any, **options: Any) -> subprocess.Popen:
    command = [sys.executable, "-c", "from pfbr.cli.start import main; main()", *map(str, words)]
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen(command, **given)  # type: ignore[call-overload]


def _quiet(ended: subprocess.Popen, status: set[int], seconds: float = 60) -> tuple[str, str]:
    out, err = ended.communicate(timeout=seconds)
    assert "Traceback" not in err, f"a traceback: {err[-300:]}"
    assert "Exception ignored" not in err, f"a complaint at the end: {err[-300:]}"
    assert ended.returncode in status, f"exit status {ended.returncode}: {err[-300:]}"
    return out, err


def live(*options: Any) -> subprocess.Popen:
    """A live stream that has answered its first line."""
    process = start("infer", SPEC, "-", "--method", "gaussian", "--particles", 16, *options)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("[0.1, 0.2]\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith("{"), "no answer"
    return process


def _signalled(number: signal.Signals) -> Callable[[Path], None]:
    """The live stream ends quietly, and its posteriors are kept."""

    def check(directory: Path) -> None:
        process = live("--out", directory / "out.npz")
        process.send_signal(number)
        _quiet(process, {0, 130})
        with np.load(directory / "out.npz") as kept:
            assert len(kept["mean"]) == 1
        assert sorted(contents(directory)) == ["out.npz"]

    return check


def training(directory: Path, *options: Any) -> subprocess.Popen:
    """A training that has written its first checkpoint."""
    out = directory / "a.pfbr"
    process = start("train", SPEC, "--out", out, "--minutes", 5, "--particles", 16, *options, stdin=subprocess.DEVNULL)
    until = time.monotonic() + 240
    while not (directory / "a.pfbr.checkpoint").exists():
        assert process.poll() is None, f"ended: {process.communicate()[1][-300:]}"
        assert time.monotonic() < until, "no checkpoint"
        time.sleep(0.1)
    return process


def _training_signalled(directory: Path) -> None:
    """SIGTERM is Ctrl-C: the best operator so far is written."""
    process = training(directory)
    process.send_signal(signal.SIGTERM)
    _quiet(process, {0}, 120)
    pfbr.load(directory / "a.pfbr")


def _two_trainings(directory: Path) -> None:
    """The second one into the same file is refused at once; after a kill of the first, nothing stands in the way."""
    first = training(directory)
    try:
        second = start("train", SPEC, "--out", directory / "a.pfbr", "--steps", 1, "--particles", 16)
        _, err = _quiet(second, {2})
        assert len(err.strip().splitlines()) == 1
        assert "another" in err or "in use" in err, err
    finally:
        first.kill()
        first.communicate()
    third = start("train", SPEC, "--out", directory / "a.pfbr", "--steps", 1, "--particles", 16)
    _quiet(third, {0}, 240)


def _children_seconds() -> float:
    """CPU seconds of the processes that have ended: other than those of a clock, they do not depend on who else runs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _another_model(directory: Path) -> None:
    """`--resume` of another model is refused before anything is compiled."""
    process = training(directory)
    process.kill()
    process.communicate()
    for spec in ("gaussian-mixture", "gaussian-mean:dim=3", "gaussian-mean:dim=2,observation_std=1.5"):
        began = _children_seconds()
        other = start("train", spec, "--out", directory / "a.pfbr", "--minutes", 5, "--particles", 16, "--resume")
        _, err = _quiet(other, {2})
        assert _children_seconds() - began < 12, "refused late"
        assert "another" in err, err


def _second_interrupt(directory: Path) -> None:
    """A second Ctrl-C ends at once, whatever is going on."""
    process = training(directory)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < 10:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert time.monotonic() - began < 3, "went on after a second Ctrl-C"
    _quiet(process, {0, 130, -signal.SIGINT})
    assert not [name for name in contents(directory) if name.endswith(".part")], "a torn file"


def _broken_pipe(*words: Any) -> Callable[[Path], None]:
    def check(directory: Path) -> None:
        process = start(*words, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = _quiet(process, {0, 1, 130, -signal.SIGPIPE, 141})
        assert not err.strip(), f"on stderr: {err[:200]}"

    return check


def _head(directory: Path) -> None:
    """`pfbr infer … | head -1` ends quietly when nobody reads on."""
    process = live()
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.close()
    process.stdout = None
    with contextlib.suppress(BrokenPipeError):
        for _ in range(3):
            process.stdin.write("[0.1, 0.2]\n")
            process.stdin.flush()
            time.sleep(0.2)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdin = None
    _quiet(process, {0, 1, 130, 141})


def _stdout_full(*words: Any) -> Callable[[Path], None]:
    """An answer that nobody can write down is an error of one line."""

    def check(directory: Path) -> None:
        with open("/dev/full", "w") as full:
            process = start(*words, stdout=full, stdin=subprocess.DEVNULL)
            _, err = _quiet(process, {2})
        assert len(err.strip().splitlines()) == 1, err[-300:]
        assert "No space left" in err

    return check


def _killed_lock(directory: Path) -> None:
    from pfbr.io.locks import held

    path = directory / "out"
    code = f"import os, signal\nfrom pfbr.io.locks import held\nwith held({str(path)!r}):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    with held(path):
        pass


def _lock_held(directory: Path) -> None:
    from pfbr.io.locks import held

    def again() -> None:
        with held(directory / "out"):
            raise AssertionError("held twice")

    with held(directory / "out"):
        _refused(again, "out")
    with held(directory / "out"):
        pass
    assert contents(directory) == {}, "a lock is left behind"


def _modes(directory: Path) -> None:
    """A file that is there keeps its permissions, and a link its target."""
    target = directory / "target"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (directory / "link").symlink_to(target)
    files.write_bytes(directory / "link", b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def _cases() -> list[Case]:
    found = [
        Case(GROUP, f"a disk that is full after {size} bytes: {name}", _full(name, size))
        for name in WRITERS
        for size in (0, 1000, 8192)
    ]
    found += [
        Case(GROUP, f"a disk that is full after {s} bytes: measurements", _full_records(s)) for s in (100, 1000, 9000)
    ]
    found += [
        Case(GROUP, f"{place}: {name}", _place(name, place))
        for place in PLACES
        for name in WRITERS
        if not (name == "a record" and place in PLACES[2:])
    ]
    found += [
        Case(GROUP, "a lock is held once", _lock_held),
        Case(GROUP, "permissions and links stay", _modes),
        Case(GROUP, "a killed process leaves no lock", _killed_lock, slow=True),
        Case(GROUP, "SIGTERM of a live stream", _signalled(signal.SIGTERM), slow=True),
        Case(GROUP, "Ctrl-C of a live stream", _signalled(signal.SIGINT), slow=True),
        Case(GROUP, "SIGTERM of a training", _training_signalled, slow=True),
        Case(GROUP, "a second Ctrl-C", _second_interrupt, slow=True),
        Case(GROUP, "two trainings into one file", _two_trainings, slow=True),
        Case(GROUP, "--resume of another model", _another_model, slow=True),
        Case(GROUP, "nobody reads a live stream's answers", _head, slow=True),
        Case(GROUP, "nobody reads --help", _broken_pipe("--help"), slow=True),
        Case(
            GROUP,
            "nobody reads pfbr show",
            _broken_pipe("show", Path(pfbr.__file__).parent / "inference/pretrained/mixture.pfbr"),
            slow=True,
        ),
        Case(
            GROUP,
            "pfbr show to a full disk",
            _stdout_full("show", Path(pfbr.__file__).parent / "inference/pretrained/mixture.pfbr"),
            slow=True,
        ),
        Case(
            GROUP, "pfbr check to a full disk", _stdout_full("check", "gaussian-mean:dim=2", "--draws", 2048), slow=True
        ),
    ]
    return found


CASES = _cases()
