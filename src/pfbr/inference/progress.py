"""A bar for a long run: that it compiles, then how many observations are done and how long the rest will take."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

SHOWN = 50  # times that a run tells how far it is
WIDTH = 24
_current: "Bar | None" = None  # the compiled run knows no bar; it calls `report`, which knows


class Bar:
    """A bar on one line of the terminal or notebook; elsewhere a line every tenth."""

    def __init__(self, total: int, stream: Any = None):
        self.total, self.stream = total, stream or sys.stderr
        self.moves = self.stream.isatty() or "ipykernel" in sys.modules
        self.begun: float | None = None  # when the first observation was done: before, it compiles
        self.first = self.said = 0
        self._write(f"{'░' * WIDTH} compiling, then {total} observations", "")

    def show(self, done: int) -> None:
        now = time.monotonic()
        if self.begun is None:
            self.begun, self.first = now, done
        if done <= self.said and done < self.total:
            return
        left = ""
        if done > self.first:
            seconds = (now - self.begun) / (done - self.first) * (self.total - done)
            left = f", {int(seconds) // 60}:{int(seconds) % 60:02d} left"
        filled = WIDTH * done // self.total
        line = f"{'█' * filled}{'░' * (WIDTH - filled)} {done} of {self.total} observations{left}"
        if self.moves or 10 * done // self.total > 10 * self.said // self.total:
            self._write(line, "\n" if done >= self.total else "")
        self.said = done

    def _write(self, line: str, end: str) -> None:
        self.stream.write(f"\r\x1b[K{line}{end}" if self.moves else f"{line}\n")
        self.stream.flush()


@contextlib.contextmanager
def shown(total: int, progress: bool) -> Iterator[None]:
    """While this is open, runs that were compiled to tell how far they are do so; one at a time."""
    global _current
    if not progress:
        yield
        return
    _current = bar = Bar(total)
    try:
        yield
        jax.effects_barrier()
        if bar.said < total:
            bar.show(total)
    finally:
        if bar.moves and bar.said < total:
            bar.stream.write("\n")  # an error has the next line
        _current = None


def tell(index: Array, length: int) -> None:
    """Inside a scan: now and then, say that observation `index`, from 0, is done."""
    every = max(1, length // SHOWN)
    done = index + 1
    jax.lax.cond(
        (done % every == 0) | (done == 1),
        lambda: jax.debug.callback(report, done),
        lambda: None,
    )


def report(done: Any) -> None:
    """So many observations are done; nothing where no bar is shown."""
    if _current is not None:
        _current.show(int(np.max(done)))
