"""Names, shapes and constraints of a model's unknowns: from a flat vector of free numbers to a dict, and back."""

import functools
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import ModelError
from pfbr.models.constraints import Constraint, Free, _checked_shape
from pfbr.typing import Point, Scalar


class Unknowns(eqx.Module):
    """The parts of an unknown in the order in which they stand in the flat vector."""

    names: tuple[str, ...] = eqx.field(static=True)
    parts: tuple[Constraint, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, model) -> "Unknowns | None":
        """Those that the model declares in `unknowns`, or None for a model that speaks in plain vectors."""
        spec, name = getattr(model, "unknowns", None), type(model).__name__
        if spec is None:
            return None
        if not isinstance(spec, dict):
            raise ModelError(f"`{name}.unknowns` must be a dict of names and shapes; got {type(spec).__name__}.")
        return _parsed(name, tuple((key, tuple(e) if isinstance(e, list) else e) for key, e in spec.items()))

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def constrain(self, free: Point) -> dict[str, Array]:
        """From free numbers (size,) to the user's dict."""
        return {name: part.constrain(piece) for name, part, piece in self._pieces(free)}

    def unconstrain(self, value: dict[str, Array]) -> Point:
        """From the user's dict to free numbers."""
        if not isinstance(value, dict) or set(value) != set(self.names):
            got = f"the keys {sorted(value)}" if isinstance(value, dict) else type(value).__name__
            raise ModelError(f"expected a dict with the unknowns {', '.join(self.names)}; got {got}.")
        pieces = []
        for name, part in zip(self.names, self.parts, strict=True):
            array = jnp.asarray(value[name], dtype=jnp.result_type(float))
            if array.shape != part.shape:
                raise ModelError(f"the unknown {name!r} has shape {part.shape}; got {array.shape}.")
            pieces.append(part.unconstrain(array))
        return jnp.concatenate(pieces)

    def log_det(self, free: Point) -> Scalar:
        return sum((part.log_det(piece) for _, part, piece in self._pieces(free)), jnp.zeros((), free.dtype))

    def _pieces(self, free: Point):
        start = 0
        for name, part in zip(self.names, self.parts, strict=True):
            yield name, part, jax.lax.slice_in_dim(free, start, start + part.size)
            start += part.size

    def labels(self) -> list[str]:
        """One name for each number on the user's scale: beta[0], beta[1], sigma."""
        found = []
        for name, part in zip(self.names, self.parts, strict=True):
            for index in np.ndindex(*part.shape):
                found.append(name + (f"[{','.join(map(str, index))}]" if index else ""))
        return found


@functools.lru_cache(maxsize=256)
def _parsed(model: str, spec: tuple[tuple[str, Any], ...]) -> Unknowns:
    if not spec:
        raise ModelError(f"`{model}.unknowns` is empty: name at least one unknown.")
    names, parts = [], []
    for name, entry in spec:
        if not isinstance(name, str) or not name:
            raise ModelError(f"`{model}.unknowns` has the key {name!r}; names are non-empty strings.")
        names.append(name)
        if isinstance(entry, Constraint):
            parts.append(entry)
        elif isinstance(entry, tuple):
            parts.append(Free(_checked_shape(entry)))
        elif isinstance(entry, int) and not isinstance(entry, bool):
            parts.append(Free(_checked_shape((entry,))))
        else:
            raise ModelError(
                f"`{model}.unknowns[{name!r}]` must be a shape such as (3,) or (), or a constraint such as "
                f"pfbr.positive; got {entry!r}."
            )
    return Unknowns(tuple(names), tuple(parts))
