"""A table holds what it must, or is refused by the name of the field."""

import math

import pytest

from pfbr.errors import FileError
from pfbr.io import schema

FIELDS = {
    "count": schema.whole(1, 10),
    "score": schema.maybe(schema.number(0.0)),
    "name": schema.text(5),
    "shape": schema.listing(schema.whole(), 3),
    "settings": schema.table_of(schema.SCALAR),
    "either": schema.Optional(schema.either(schema.whole(), schema.text())),
}
GOOD = {"count": 3, "score": 0.5, "name": "abc", "shape": [1, 2], "settings": {"a": 1, "b": None}}


@pytest.mark.parametrize("change", [{}, {"score": None}, {"either": "a"}, {"either": 7}, {"more": [1]}, {"shape": []}])
def test_what_fits_passes(change):
    schema.check_table(GOOD | change, FIELDS, "the/file")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 0),
        ("count", 11),
        ("count", True),
        ("count", 2.0),
        ("count", "3"),
        ("score", -1.0),
        ("score", math.inf),
        ("score", math.nan),
        ("name", "abcdef"),
        ("name", 3),
        ("shape", [1, 2, 3, 4]),
        ("shape", [1, "2"]),
        ("shape", 3),
        ("settings", {"a": [1]}),
        ("settings", [1]),
        ("either", 1.5),
    ],
)
def test_what_does_not_is_named(name, value):
    with pytest.raises(FileError, match=rf"the/file: `of\.{name}` must be .* Make it again\."):
        schema.check_table(GOOD | {name: value}, FIELDS, "the/file", "of")


def test_what_is_missing_is_named():
    with pytest.raises(FileError, match="the/file lacks `name`"):
        schema.check_table({k: v for k, v in GOOD.items() if k != "name"}, FIELDS, "the/file")
