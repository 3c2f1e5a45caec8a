"""Trees of plain containers as JSON and named arrays: dicts, lists, tuples, numbers, texts."""

from typing import Any

import jax
import numpy as np

from pfbr.errors import FileError, InputError


def described(tree: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The tree as JSON; its arrays are put among `arrays`, under names that begin with `name`."""
    if tree is None or isinstance(tree, bool | str):
        return tree
    if isinstance(tree, int) and not isinstance(tree, np.generic):
        return tree
    if isinstance(tree, dict):
        if not all(isinstance(key, str) for key in tree):
            raise InputError(f"`{name}` is a dict whose keys are not all texts, which no file can hold.")
        return {"dict": {key: described(one, f"{name}.{key}", arrays) for key, one in tree.items()}}
    if type(tree) in (list, tuple):
        parts = [described(one, f"{name}.{i}", arrays) for i, one in enumerate(tree)]
        return {type(tree).__name__: parts}
    if isinstance(tree, float | np.ndarray | np.generic | jax.Array):
        arrays[name] = np.asarray(tree)
        return {"float" if type(tree) is float else "array": name}
    raise InputError(
        f"`{name}` is a {type(tree).__name__}, which no file can hold: use dicts, lists, tuples, arrays and numbers."
    )


def rebuilt(document: Any, arrays: dict[str, np.ndarray], source: str) -> Any:
    """The tree that `described` wrote."""
    if document is None or isinstance(document, bool | str | int):
        return document
    if isinstance(document, dict) and len(document) == 1:
        kind, inner = next(iter(document.items()))
        if kind == "dict" and isinstance(inner, dict):
            return {name: rebuilt(one, arrays, source) for name, one in inner.items()}
        if kind in ("list", "tuple") and isinstance(inner, list):
            parts = [rebuilt(one, arrays, source) for one in inner]
            return parts if kind == "list" else tuple(parts)
        if kind in ("array", "float") and isinstance(inner, str) and inner in arrays:
            return arrays[inner] if kind == "array" else float(arrays[inner])
    raise FileError(f"{source} describes something in a way that this pfbr cannot read. Make it again.")
