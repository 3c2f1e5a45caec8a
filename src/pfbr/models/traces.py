"""What the trace of a function shows before anything is computed: indices outside an array, numbers that change.

JAX clamps an index that is out of bounds, so that `x[5]` of two unknowns is `x[1]` without a word. Where the index is
written in the code it stands in the trace as a constant, and can be compared with the size of what it looks into.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.lax import GatherScatterMode

SMALL = 4096  # constants of more entries are not followed: nobody writes so many indices into code


class Outside(NamedTuple):
    """An index that the code names, and the size of the axis in which there is no such entry."""

    place: int
    size: int


def traced(function: Callable, *examples: Any) -> tuple[ClosedJaxpr, Any]:
    """The function as JAX sees it, made anew, and the shapes of what it returns."""
    return jax.make_jaxpr(lambda *args: function(*args), return_shape=True)(*examples)


def index_outside(program: ClosedJaxpr) -> Outside | None:
    """The first index in the program that is a constant and out of bounds."""
    return next(_walk(program.jaxpr, _constants_of(program)), None)


def constants(program: ClosedJaxpr) -> list[np.ndarray]:
    """Every number that the program holds, in order: two traces of one pure function hold the same."""
    found = [np.asarray(const) for const in program.consts if _plain(const)]
    for equation in program.jaxpr.eqns:
        found += [np.asarray(atom.val) for atom in equation.invars if isinstance(atom, Literal)]
        for inner in _inner(equation):
            found += constants(inner)
    return found


def same_constants(one: ClosedJaxpr, other: ClosedJaxpr) -> bool:
    first, second = constants(one), constants(other)
    return len(first) == len(second) and all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(first, second, strict=True)
    )


def _constants_of(program: ClosedJaxpr) -> dict[Any, np.ndarray]:
    return {v: np.asarray(c) for v, c in zip(program.jaxpr.constvars, program.consts, strict=True) if _known(c)}


def _walk(jaxpr: Jaxpr, known: dict[Any, np.ndarray]) -> Iterator[Outside]:
    """Follow whole numbers that do not depend on an argument through the few operations that indexing makes."""

    def value(atom: Any) -> np.ndarray | None:
        if not isinstance(atom, Literal):
            return known.get(atom)
        return np.asarray(atom.val) if _known(atom.val) else None

    for equation in jaxpr.eqns:
        name, given = equation.primitive.name, [value(atom) for atom in equation.invars]
        yield from _looked_up(name, equation, given)
        for inner in _inner(equation):
            passed = given if len(given) == len(inner.jaxpr.invars) and name in _CALLS else []
            inside = {var: v for var, v in zip(inner.jaxpr.invars, passed, strict=False) if v is not None}
            yield from _walk(inner.jaxpr, inside | _constants_of(inner))
        if name in _FOLLOWED and len(equation.outvars) == 1 and all(v is not None for v in given):
            result = np.asarray(_FOLLOWED[name](equation.params, *given))
            if result.size <= SMALL:
                known[equation.outvars[0]] = result


def _looked_up(name: str, equation: Any, given: list[np.ndarray | None]) -> Iterator[Outside]:
    shape = equation.invars[0].aval.shape if equation.invars else ()
    if name == "dynamic_slice":
        for axis, (start, size) in enumerate(zip(given[1:], equation.params["slice_sizes"], strict=True)):
            if start is not None and not 0 <= int(start) <= shape[axis] - size:
                yield Outside(_as_written(int(start), shape[axis]), shape[axis])
    elif name == "gather" and given[1] is not None:
        if equation.params["mode"] not in (None, GatherScatterMode.PROMISE_IN_BOUNDS):
            return  # whoever names a mode has thought of it
        numbers = equation.params["dimension_numbers"].start_index_map
        for place, axis in enumerate(numbers):
            last = shape[axis] - equation.params["slice_sizes"][axis]
            yield from _beyond(given[1][..., place], last, shape[axis])
    elif name.startswith("scatter") and given[1] is not None and given[1].size:
        for place, axis in enumerate(equation.params["dimension_numbers"].scatter_dims_to_operand_dims):
            indices = given[1][..., place]
            if np.all((indices < 0) | (indices >= shape[axis])):  # some are left out on purpose, not all
                yield from _beyond(indices, shape[axis] - 1, shape[axis])


def _beyond(indices: np.ndarray, last: int, size: int) -> Iterator[Outside]:
    wrong = indices[(indices < 0) | (indices > last)]
    if wrong.size:
        yield Outside(_as_written(int(wrong.flat[0]), size), size)


def _as_written(index: int, size: int) -> int:
    """A negative index has been counted from the end by now."""
    return index - size if index < 0 else index


def _inner(equation: Any) -> Iterator[ClosedJaxpr]:
    for parameter in equation.params.values():
        for one in parameter if isinstance(parameter, tuple | list) else (parameter,):
            if isinstance(one, ClosedJaxpr):
                yield one
            elif isinstance(one, Jaxpr) and not one.constvars:
                yield ClosedJaxpr(one, [])


def _plain(const: Any) -> bool:
    return not jnp.issubdtype(jnp.result_type(const), jax.dtypes.prng_key)


def _known(const: Any) -> bool:
    return _plain(const) and np.size(const) <= SMALL and np.asarray(const).dtype.kind in "iub"


_CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint")
_FOLLOWED: dict[str, Callable[..., np.ndarray]] = {
    "lt": lambda params, a, b: np.less(a, b),
    "add": lambda params, a, b: np.add(a, b),
    "sub": lambda params, a, b: np.subtract(a, b),
    "select_n": lambda params, which, *cases: np.where(which, cases[-1], cases[0]),
    "convert_element_type": lambda params, a: a,  # whole numbers stay what they are
    "broadcast_in_dim": lambda params, a, *rest: _broadcast(a, params["shape"], params["broadcast_dimensions"]),
    "reshape": lambda params, a, *rest: a.reshape(params["new_sizes"]),
    "squeeze": lambda params, a: np.squeeze(a, tuple(params["dimensions"])),
    "concatenate": lambda params, *parts: np.concatenate(parts, params["dimension"]),
}


def _broadcast(array: np.ndarray, shape: tuple[int, ...], dimensions: tuple[int, ...]) -> np.ndarray:
    if int(np.prod(shape)) > SMALL:
        return np.zeros(SMALL + 1)
    placed = [1] * len(shape)
    for axis, place in enumerate(dimensions):
        placed[place] = array.shape[axis]
    return np.broadcast_to(array.reshape(placed), shape)
