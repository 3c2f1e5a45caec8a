"""An operator on disk, with how it was made."""

import dataclasses
import os
from typing import Any

import numpy as np

from pfbr.errors import FileError, InputError
from pfbr.inference.architectures import NAMES, described, skeleton
from pfbr.inference.operator import Operator
from pfbr.inference.provenance import Provenance
from pfbr.io import containers
from pfbr.io.files import write_bytes


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
    architecture = header.get("architecture")
    kind = architecture.get("name") if isinstance(architecture, dict) else None
    if kind not in NAMES:
        raise FileError(
            f"{path} holds an operator of the kind {kind!r}; this pfbr knows {', '.join(NAMES)}. Update pfbr."
        )
    try:
        structure = skeleton(described(architecture))  # type: ignore[arg-type]
    except (ArithmeticError, AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} describes its network in a way that this pfbr cannot read ({error}).") from None
    return dataclasses.replace(containers.filled(structure, arrays, path), provenance=Provenance(header))


def read_header(path: str | os.PathLike) -> dict:
    """How the operator in a file was made: architecture, model, settings, seed, version, history, validation score."""
    return containers.read(path, "operator")[0]
