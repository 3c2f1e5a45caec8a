"""What a case of the attack is: a name, what is done, and what must hold afterwards."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import TypeCheckError

from pfbr.errors import PfbrError
from tests.cli.commands import pfbr_command

LONGEST = 900  # characters of a message that a person still reads


class Case(NamedTuple):
    """`check` is called with an empty directory; it raises AssertionError where a promise is broken."""

    group: str
    name: str
    check: Callable[[Path], None]
    slow: bool = False  # starts processes, or compiles: not in `make test`

    @property
    def id(self) -> str:
        return f"{self.group}: {self.name}"


def broken(case: Case, directory: Path) -> str | None:
    """How the case breaks a promise, in a line; None where it does not."""
    try:
        case.check(directory)
    except AssertionError as error:
        return str(error).strip().split("\n")[0][:200]
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error).strip()}".split("\n")[0][:200]
    return None


def refused(group: str, name: str, attempt: Callable[..., Any], says: str, *, slow: bool = False) -> Case:
    """An attempt in Python that must end in an error of ours whose one line matches `says`.

    `attempt` takes the directory or nothing. No file may appear or change.
    """

    def check(directory: Path) -> None:
        before = None
        takes_directory = attempt.__code__.co_argcount - len(attempt.__defaults__ or ()) > 0
        try:
            if takes_directory:
                prepared = attempt(directory)
                before = contents(directory)
                prepared()
            else:
                attempt()
        except PfbrError as error:
            message = str(error)
        except TypeCheckError:
            if attempt.__module__ != "tests.attack.settings":
                raise
            return  # the shape checks of the tests were faster; `python -m tests.attack` goes without
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} instead of an error of ours: {error}") from error
        else:
            raise AssertionError("accepted without a word")
        assert "\n" not in message, f"more than a line: {message!r}"
        assert len(message) <= LONGEST, f"{len(message)} characters: {message[:100]}"
        assert re.search(says, message), f"does not say {says!r}: {message}"
        if before is not None:
            assert contents(directory) == before, "files appeared or changed"

    return Case(group, name, check, slow)


def accepted(group: str, name: str, attempt: Callable[[], Any], *, slow: bool = False) -> Case:
    """What is unusual and right, and must go through."""
    return Case(group, name, lambda directory: attempt() and None, slow)


def command_refused(
    group: str,
    name: str,
    words: Callable[[Path], list[Any]],
    says: str,
    *,
    given: str | bytes | None = None,
    slow: bool = False,
) -> Case:
    """A command that must end with status 2 and one line on stderr, nothing on stdout, and no file changed."""

    def check(directory: Path) -> None:
        line = [str(word) for word in words(directory)]
        before = contents(directory)
        result = pfbr_command(*line, input=given)
        error = result.exception
        assert error is None or isinstance(error, SystemExit), f"{type(error).__name__}: {error}"
        assert result.exit_code == 2, f"exit status {result.exit_code}: {result.output[:200]}"
        lines = [text for text in result.stderr.splitlines() if text.strip()]
        assert len(lines) == 1, f"{len(lines)} lines on stderr: {result.stderr[:200]}"
        assert lines[0].startswith("error: "), lines[0]
        assert "Traceback" not in result.output
        assert len(lines[0]) <= LONGEST + 7, f"{len(lines[0])} characters: {lines[0][:100]}"
        assert re.search(says, lines[0]), f"does not say {says!r}: {lines[0]}"
        assert not result.stdout, f"on stdout: {result.stdout[:100]}"
        assert contents(directory) == before, "files appeared or changed"

    return Case(group, name, check, slow)


def contents(directory: Path) -> dict[str, bytes | None]:
    """Every file below the directory with its bytes; None for what cannot be read, and for folders."""
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(directory):
        for name in folders:
            found[str((Path(folder) / name).relative_to(directory))] = None
        for name in files:
            path = Path(folder) / name
            whole = path.is_file() and os.access(path, os.R_OK) and not path.is_symlink()
            found[str(path.relative_to(directory))] = path.read_bytes() if whole else None
    return found
