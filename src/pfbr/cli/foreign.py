"""A user's code runs here: what it prints goes to stderr, it neither moves us elsewhere nor ends the program."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from pfbr.errors import ModelError


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """Run a user's code: `sys.exit` and odd exceptions are errors of ours; directory, path and arguments stay."""
    place, path, words = os.getcwd(), list(sys.path), list(sys.argv)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SystemExit as error:
        said = f"SystemExit: {error.code}"
        raise ModelError(f"{what} calls sys.exit ({said}): take that out of what runs when it is imported.") from error
    finally:
        sys.path[:], sys.argv[:] = path, words
        with contextlib.suppress(OSError):
            if os.getcwd() != place:
                os.chdir(place)


@contextlib.contextmanager
def answers_alone(stdout: TextIO) -> Iterator[TextIO]:
    """Where answers go, while everything else that anybody prints goes to stderr, from compiled code too."""
    try:
        is_real = stdout.fileno() == 1
    except (OSError, ValueError, AttributeError):  # a test's, or a notebook's
        is_real = False
    if not is_real:
        with contextlib.redirect_stdout(sys.stderr):
            yield stdout
        return
    stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)  # libraries in C write there, too
    try:
        # closed by hand: what cannot be written any more must not complain at the end
        answers = os.fdopen(own, "w", encoding="utf-8", closefd=False)
        with contextlib.redirect_stdout(sys.stderr):
            yield answers
    finally:
        os.dup2(own, 1)
        os.close(own)
