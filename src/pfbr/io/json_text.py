"""JSON from outside: of bounded size and depth, in UTF-8, no key twice, no NaN; anything else is refused."""

import json
import os
from pathlib import Path
from typing import Any, NoReturn

from pfbr.checks import shortened
from pfbr.errors import FileError

LARGEST = 2**25  # bytes of a document: 32 MB
DEEPEST = 64  # lists and tables inside one another


def parse(content: bytes | str, source: str) -> Any:
    """What a document says."""
    if len(content) > LARGEST:
        raise FileError(f"{source} holds {len(content)} bytes of JSON, more than any that pfbr writes ({LARGEST}).")
    try:
        text = content.decode() if isinstance(content, bytes) else content
        value = json.loads(text, object_pairs_hook=_table, parse_constant=_no_number)
    except RecursionError:
        raise FileError(f"{source} is nested too deep. Make it again.") from None
    except ValueError as error:  # no JSON, no UTF-8, a number of 5,000 digits
        raise FileError(f"{source} is no JSON that pfbr can read ({shortened(str(error))}). Make it again.") from None
    if _deeper_than(value, DEEPEST):
        raise FileError(f"{source} is nested deeper than {DEEPEST} lists and tables. Make it again.")
    return value


def parse_table(content: bytes | str, source: str) -> dict[str, Any]:
    """The same of a document that must be a table: names and values."""
    value = parse(content, source)
    if not isinstance(value, dict):
        raise FileError(f"{source} must hold a table of names and values; it holds {shortened(value)}. Make it again.")
    return value


def read_table(path: str | os.PathLike) -> dict[str, Any]:
    return parse_table(read_bytes(path, LARGEST), str(path))


def read_bytes(path: str | os.PathLike, largest: int, missing: str = "Check the path.") -> bytes:
    """All of a file that is not larger than it may be; `missing` is said where there is none."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(largest + 1)  # however large the file claims to be
    except FileNotFoundError:
        raise FileError(f"there is no file {path}. {missing}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {shortened(str(path))}: {_reason(error)}.") from None
    if len(content) > largest:
        raise FileError(f"{path} is larger than any file of its kind ({largest} bytes).")
    return content


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or shortened(str(error))


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one table")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number in JSON")


def _deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
