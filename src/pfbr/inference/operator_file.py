"""An operator on disk, with how it was made."""

import dataclasses
import json
import os

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import FileError, InputError
from pfbr.inference.architectures import NAMES, described, skeleton
from pfbr.inference.operator import Operator
from pfbr.io import containers as files


def save(path: str | os.PathLike, operator: Operator) -> None:
    """Write an operator and its provenance to one file. `head -2 FILE` shows the header."""
    if not isinstance(operator, Operator) or "architecture" not in json.loads(operator.provenance):
        raise InputError(
            "only operators made by pfbr.fit can be saved: a training-free operator has nothing to save "
            f"(pfbr.gaussian_operator() makes it again); got {type(operator).__name__}."
        )
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(operator, eqx.is_array))]
    files.write(path, "operator", json.loads(operator.provenance), leaves)


def load(path: str | os.PathLike) -> Operator:
    """The operator that `save` wrote."""
    header, arrays = files.read(path, "operator")
    kind = header.get("architecture", {}).get("name")
    if kind not in NAMES:
        raise FileError(
            f"{path} holds an operator of the kind {kind!r}; this pfbr knows {', '.join(NAMES)}. Update pfbr."
        )
    operator = filled(skeleton(described(header["architecture"])), arrays, path)
    return dataclasses.replace(operator, provenance=json.dumps(header))


def read_header(path: str | os.PathLike) -> dict:
    """How the operator in a file was made: architecture, model, settings, seed, version, history, validation score."""
    return files.read(path, "operator")[0]


def filled(structure, arrays: list[np.ndarray], path):
    """A tree with the given arrays in place of its shapes."""
    expected, rest = eqx.partition(structure, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct | jax.Array))
    leaves, treedef = jax.tree.flatten(expected)
    if [leaf.shape for leaf in leaves] != [a.shape for a in arrays]:
        raise FileError(f"{path} does not hold the arrays that its header describes; it was made by another pfbr.")
    return eqx.combine(jax.tree.unflatten(treedef, [jnp.asarray(a) for a in arrays]), rest)
