"""One command as several processes of this machine: they end together, and if one dies the others are stopped."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

MOST_TO_END = 60.0  # seconds that the others have after the first one has ended well


def launch(arguments: Sequence[str], processes: int) -> int:
    """Run `pfbr ARGUMENTS` as so many processes that know of each other; the exit status, 0 where all ended well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = [sys.executable, "-c", "from pfbr.cli.start import main; main()", *arguments]
    shared = [f"--processes={processes}", f"--coordinator=127.0.0.1:{port}"]
    children = [subprocess.Popen([*start, *shared, f"--process={number}"]) for number in range(processes)]
    try:
        return _watched(children)
    except KeyboardInterrupt:  # a terminal tells the children too; they keep the best so far
        return _watched(children)
    finally:
        _stop(children)


def _watched(children: list[subprocess.Popen]) -> int:
    """Wait for all; what the first that failed ended with."""
    deadline = float("inf")
    while True:
        ended = [child.poll() for child in children]
        failed = [(number, status) for number, status in enumerate(ended) if status]
        if failed:
            number, status = failed[0]
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            print(f"process {number} of {len(children)} {how}; the others are stopped.", file=sys.stderr)
            return status if status > 0 else 128 - status
        if all(status == 0 for status in ended):
            return 0
        if any(status == 0 for status in ended):
            deadline = min(deadline, time.monotonic() + MOST_TO_END)
        if time.monotonic() > deadline:
            print("some processes did not end with the others; they are stopped.", file=sys.stderr)
            return 1
        time.sleep(0.1)


def _stop(children: list[subprocess.Popen]) -> None:
    for wait, sign in ((5.0, signal.SIGTERM), (5.0, signal.SIGKILL)):
        for child in children:
            if child.poll() is None:
                with contextlib.suppress(OSError):
                    os.kill(child.pid, sign)
        deadline = time.monotonic() + wait
        while any(child.poll() is None for child in children) and time.monotonic() < deadline:
            time.sleep(0.05)
