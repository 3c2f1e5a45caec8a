"""A method as its name and its settings: what a file needs to make the same one again."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np

from pfbr.errors import FileError, InputError, PfbrError
from pfbr.inference import operator_file
from pfbr.inference.corrected import Corrected
from pfbr.inference.method import Method
from pfbr.inference.ood import ReferenceStatistics
from pfbr.inference.operator import Operator, gaussian_operator
from pfbr.inference.registry import method_class


def describe(method: Method, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The method as JSON, its arrays put among `arrays`; one that could not be made again is refused by name.

    A trained operator is a whole operator file, among the arrays.
    """
    document = _settings(method, "method", type(method).__name__, arrays)
    try:
        again = rebuild(document, arrays, "it")
    except PfbrError as error:
        raise InputError(_refusal(method, str(error))) from None
    if not eqx.tree_equal(_plain(again), _plain(method)):
        raise InputError(_refusal(method, "what would be read is not what was written"))
    return document


def rebuild(document: Any, arrays: dict[str, np.ndarray], source: str) -> Method:
    """The method that `describe` wrote."""
    made = _made(document, None, arrays, source)
    if not isinstance(made, Method):
        raise FileError(f"{source} does not describe a method. Make it again.")
    return made


def _settings(value: Any, path: str, method: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, Operator) and "architecture" in value.provenance.document:
        arrays[path] = np.frombuffer(operator_file.to_bytes(value), np.uint8)
        return {"operator": path}
    if isinstance(value, eqx.Module):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        fields = [name for name in fields if name != "provenance"]  # a story, not a setting
        inner = {name: _settings(getattr(value, name), f"{path}.{name}", method, arrays) for name in fields}
        return {"kind": type(value).__name__, "settings": inner}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        arrays[path] = np.asarray(value)
        return {"array": path}
    if isinstance(value, tuple):
        return [_settings(one, f"{path}[{i}]", method, arrays) for i, one in enumerate(value)]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return value
    what = f"its `{path.removeprefix('method.')}` is a {type(value).__name__}"
    raise InputError(f"{method} cannot be described in a file: {what}. Use a method of pfbr's own, or a name.")


def _made(document: Any, default: Any, arrays: dict[str, np.ndarray], source: str) -> Any:
    """What a part of a description says; `default` is what stands there in a method with no settings."""
    if isinstance(document, list):
        return tuple(_made(one, None, arrays, source) for one in document)
    if not isinstance(document, dict):
        return document
    if set(document) == {"array"} and document["array"] in arrays:
        return jax.numpy.asarray(arrays[document["array"]])
    if set(document) == {"operator"} and document["operator"] in arrays:
        return operator_file.from_bytes(arrays[document["operator"]].tobytes(), f"the operator in {source}")
    if set(document) != {"kind", "settings"} or not isinstance(document["settings"], dict):
        raise FileError(f"{source} describes its method in a way that this pfbr cannot read. Make it again.")
    kind, settings = document["kind"], document["settings"]
    cls = type(default) if type(default).__name__ == kind else _class(kind)
    if cls is None:
        raise FileError(f"{source} was made with {kind!r}, which this pfbr does not know. Update pfbr.")
    default = default if type(default) is cls else _default(cls)
    known = {field.name for field in dataclasses.fields(cls)}
    unknown = sorted(settings.keys() - known)
    if unknown:
        raise FileError(
            f"{source} gives {kind} the setting {unknown[0]!r}, which it does not have in this pfbr: it was saved by "
            "another one."
        )
    values = {
        name: _made(one, getattr(default, name, None), arrays, source)  # one that is new since has its default
        for name, one in settings.items()
    }
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise FileError(f"{source} gives {kind} settings that it does not take ({error}).") from None


def _class(kind: Any) -> type | None:
    return ReferenceStatistics if kind == "ReferenceStatistics" else method_class(kind)


def _default(cls: type) -> Any:
    """A method of this kind with no settings, whose parts tell the classes of theirs; None where there is none."""
    if cls is Operator:
        return gaussian_operator()
    if cls is Corrected:
        return Corrected(gaussian_operator())
    try:
        return cls()
    except TypeError:
        return None


def _plain(method: Method) -> Any:
    """Arrays and numbers of one kind, so that NumPy's, JAX's and Python's compare alike."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if eqx.is_array_like(leaf) else leaf, method)


def _refusal(method: Method, why: str) -> str:
    return f"{type(method).__name__} with these settings cannot be kept in a file: {why}."
