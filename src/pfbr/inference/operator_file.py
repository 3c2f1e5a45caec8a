"""An operator on disk, with how it was made."""

import dataclasses
import os
from typing import Any

import numpy as np

from pfbr.checks import shortened
from pfbr.errors import FileError, InputError
from pfbr.inference.architectures import NAMES, described, skeleton
from pfbr.inference.operator import Operator
from pfbr.inference.provenance import Provenance
from pfbr.io import containers
from pfbr.io.files import write_bytes
from pfbr.io.schema import (
    SCALAR,
    TABLE,
    Kind,
    Optional,
    check_table,
    listing,
    maybe,
    number,
    table_of,
    text,
    whole,
)

MOST = 10**6  # dimensions, values of an observation, entries of a history
ARCHITECTURE: dict[str, Kind | Optional] = {
    "name": text(100),
    "dim": maybe(whole(1, MOST)),
    "observation_shape": maybe(listing(whole(0, MOST), 8)),
    "settings": table_of(SCALAR),
}
HEADER: dict[str, Kind | Optional] = {
    "architecture": TABLE,
    "model": Optional(text()),
    "settings": Optional(TABLE),
    "seed": Optional(listing(whole(), 8)),
    "version": Optional(text(100)),
    "history": Optional(listing(table_of(maybe(number())), MOST)),
    "steps": Optional(whole()),
    "seconds": Optional(number(0.0)),
    "validation_score": Optional(maybe(number())),
    "exact_score": Optional(maybe(number())),
    "reference_statistics": Optional(TABLE),
}
REFERENCE: dict[str, Kind | Optional] = {
    "mean": listing(number(), MOST),
    "inverse_scale": listing(listing(number(), MOST), MOST),
}


def save(path: str | os.PathLike, operator: Operator) -> None:
    """Write an operator and its provenance to one file. `head -2 FILE` shows the header."""
    if not isinstance(operator, Operator) or "architecture" not in operator.provenance.document:
        raise InputError(
            "only operators made by pfbr.fit can be saved: a training-free one has nothing to save "
            f'(method="gaussian" makes it again); got {type(operator).__name__}.'
        )
    write_bytes(path, to_bytes(operator))


def load(path: str | os.PathLike) -> Operator:
    """The operator that `save` wrote."""
    return _operator(*containers.read(path, "operator"), path)


def to_bytes(operator: Operator) -> bytes:
    """The content of a file with this operator, for files that hold one among other things."""
    return containers.to_bytes("operator", operator.provenance.document, containers.named_leaves(operator))


def from_bytes(content: bytes, source: str) -> Operator:
    return _operator(*containers.from_bytes(content, "operator", source), source)


def _operator(header: dict[str, Any], arrays: dict[str, np.ndarray], path: str | os.PathLike) -> Operator:
    _check(header, path)
    kind = header["architecture"]["name"]
    if kind not in NAMES:
        raise FileError(
            f"{path} holds an operator of the kind {kind!r}; this pfbr knows {', '.join(NAMES)}. Update pfbr."
        )
    try:
        structure = skeleton(described(header["architecture"]))
    except (ArithmeticError, AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        said = shortened(str(error))
        raise FileError(f"{path} describes its network in a way that this pfbr cannot read ({said}).") from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise FileError(f"{path} holds NaN or inf in {name!r}: it cannot have been trained so. Make it again.")
    return dataclasses.replace(containers.filled(structure, arrays, path), provenance=Provenance(header))


def read_header(path: str | os.PathLike) -> dict:
    """How the operator in a file was made: architecture, model, settings, seed, version, history, validation score."""
    header = containers.read(path, "operator")[0]
    _check(header, path)
    return header


def _check(header: dict[str, Any], path: str | os.PathLike) -> None:
    check_table(header, HEADER, str(path))
    check_table(header["architecture"], ARCHITECTURE, str(path), "architecture")
    if "reference_statistics" in header:
        check_table(header["reference_statistics"], REFERENCE, str(path), "reference_statistics")
