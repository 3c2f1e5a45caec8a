"""What a table read from a file must hold: a few kinds of values, and a check that refuses anything else."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pfbr.checks import shortened
from pfbr.errors import FileError


class Kind(NamedTuple):
    """A kind of value: what it is called, and whether a value is one."""

    words: str
    holds: Callable[[Any], bool]


def whole(least: int = 0, most: int = 2**53) -> Kind:
    words = f"a whole number from {least} to {most}"
    return Kind(words, lambda v: isinstance(v, int) and not isinstance(v, bool) and least <= v <= most)


def number(least: float = -math.inf) -> Kind:
    words = "a finite number" + ("" if least == -math.inf else f" of at least {least:g}")
    return Kind(words, lambda v: _is_number(v) and v >= least)


def text(most: int = 10_000) -> Kind:
    return Kind(f"a text of at most {most} characters", lambda v: isinstance(v, str) and len(v) <= most)


def listing(of: Kind, most: int = 10**6) -> Kind:
    words = f"a list, each entry {of.words}"
    return Kind(words, lambda v: isinstance(v, list) and len(v) <= most and all(map(of.holds, v)))


def maybe(kind: Kind) -> Kind:
    return Kind(f"{kind.words}, or null", lambda v: v is None or kind.holds(v))


def either(*kinds: Kind) -> Kind:
    return Kind(", or ".join(kind.words for kind in kinds), lambda v: any(kind.holds(v) for kind in kinds))


def table_of(kind: Kind) -> Kind:
    words = f"a table, each value {kind.words}"
    return Kind(words, lambda v: isinstance(v, dict) and all(map(kind.holds, v.values())))


TABLE = Kind("a table", lambda v: isinstance(v, dict))
SCALAR = Kind("a number, a text, a truth or null", lambda v: v is None or isinstance(v, str | bool) or _is_number(v))


class Optional(NamedTuple):
    """A field that need not be there."""

    kind: Kind


def check_table(table: Mapping[str, Any], fields: Mapping[str, "Kind | Optional"], source: str, of: str = "") -> None:
    """Refuse a table whose fields are missing or of another kind; fields that are not named may be anything."""
    place = f"{of}." if of else ""
    for name, field in fields.items():
        kind = field.kind if isinstance(field, Optional) else field
        if name not in table:
            if isinstance(field, Kind):
                raise FileError(f"{source} lacks `{place}{name}`, {kind.words}. Make it again.")
        elif not kind.holds(table[name]):
            got = shortened(table[name])
            raise FileError(f"{source}: `{place}{name}` must be {kind.words}; it is {got}. Make it again.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
