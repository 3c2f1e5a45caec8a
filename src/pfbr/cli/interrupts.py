"""How a command is stopped: SIGTERM is Ctrl-C, and a second one ends at once, whatever is being compiled."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

STOPPED = 130  # the exit status of what Ctrl-C has ended
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Inside, the first signal raises KeyboardInterrupt; the next one ends the process without waiting for Python.

    A handler written in Python runs only between two of its instructions, and a compilation is one. A thread therefore
    counts the signals as they come.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    handler = _interrupting()
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_count, args=(read,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken)
        for number, old in before.items():
            signal.signal(number, old)
        os.close(write)  # the thread reads an end, and ends


def _interrupting() -> Callable[[int, FrameType | None], None]:
    """A handler that raises the first time; Python may come to the second signal before the thread does."""
    seen: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        if len(seen) > 1:
            _end()
        raise KeyboardInterrupt

    return interrupt


def _end() -> None:
    from pfbr.io.files import remove_unfinished

    remove_unfinished()
    os._exit(STOPPED)


def _count(read: int) -> None:
    seen = 0
    while byte := os.read(read, 1):
        seen += byte[0] in _SIGNALS
        if seen > 1:
            _end()
    os.close(read)
