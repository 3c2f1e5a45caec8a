"""One step of a live stream, compiled: the cheap try first, the moves apart, where that is not enough.

What never changes during a stream, method and model, is taken apart once; a step then hands flat arrays to a compiled
function. General filtering of arguments at every call would cost more than the step.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import LikelihoodError
from pfbr.inference.info import Info
from pfbr.inference.method import (
    Method,
    State,
    advance,
    advance_by_moving,
    start,
    step_key,
    try_weighing,
    with_room,
)
from pfbr.inference.refusal import fault_in_words, step_fault
from pfbr.inference.rows import Row
from pfbr.models.base import Model

_with_room_compiled = eqx.filter_jit(with_room)
start_compiled = eqx.filter_jit(start)  # op by op, the first particles would take longer to compile


# One after the other: handing hundreds of small operations to threads costs a third of the time of a step.
_OPTIONS = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


class _Compiled:
    """A function of flat arrays: the state after a step stays on the device, and all numbers that were said about it
    come to the host in two arrays, since each array that is fetched by itself takes as long as both. What a step leaves
    as it was is not handed out again: every array that comes out of a call takes time."""

    def __init__(self, function: Callable, about: Any, rest: tuple, state: Any, row: Any):
        self._after: Any = None  # structures, known once the function was traced
        self._told: Any = None
        self._same: list[int | None] = []  # for each leaf of the state which one it was before; None: a new one
        self._kinds: list[str | None] = []  # of what was said; None: an array, which comes by itself

        def flat(key_data, number, arrays, state_leaves, row_leaves):
            leaves = iter(arrays)
            method, model = jax.tree.unflatten(about, [next(leaves) if one is _ARRAY else one for one in rest])
            key = step_key(jax.random.wrap_key_data(key_data), number)
            before, this = jax.tree.unflatten(state, state_leaves), jax.tree.unflatten(row, row_leaves)
            found = function(key, method, model, before, this.observation, this.given)
            if found is None:
                return None
            after, info, *enough = found
            after_leaves, self._after = jax.tree.flatten(after)
            places = {id(leaf): place for place, leaf in enumerate(state_leaves)}
            self._same = [places.get(id(leaf)) for leaf in after_leaves]
            changed = [leaf for leaf, same in zip(after_leaves, self._same, strict=True) if same is None]
            fault = step_fault(method.particles(after.own), info)
            told, self._told = jax.tree.flatten((info, fault, *enough))
            told = [jnp.asarray(one) for one in told]
            self._kinds = [np.dtype(one.dtype).kind if one.ndim == 0 else None for one in told]
            scalars = [one for one in told if one.ndim == 0]
            floats = [one for one in scalars if jnp.issubdtype(one.dtype, jnp.floating)]
            whole = [one.astype(int) for one in scalars if not jnp.issubdtype(one.dtype, jnp.floating)]
            apart = [one for one in told if one.ndim > 0]
            packed = [jnp.stack(one) if one else jnp.zeros(0) for one in (floats, whole)]
            return changed, packed, apart

        self._call = jax.jit(flat, compiler_options=_OPTIONS if jax.default_backend() == "cpu" else None)

    def __call__(self, *arguments) -> Any:
        """State, info, fault and, of a try, whether it is enough; None where there is none."""
        found = self._call(*arguments)
        if found is None:
            return None
        changed, packed, apart = found
        before, new = arguments[3], iter(changed)
        after = [next(new) if same is None else before[same] for same in self._same]
        floats, whole = (iter(np.asarray(one).tolist()) for one in packed)
        others = iter(apart)
        take = {None: lambda: next(others), "f": lambda: next(floats), "b": lambda: bool(next(whole))}
        told = [take.get(kind, lambda: next(whole))() for kind in self._kinds]
        return jax.tree.unflatten(self._after, after), *jax.tree.unflatten(self._told, told)


class _Array:
    """Stands for an array in what is the same for all arrays of one shape."""


_ARRAY = _Array()
_compiled: dict[tuple, _Compiled] = {}  # for all streams of one structure, whoever they belong to


class Stepper:
    """The steps of one stream: a method and a model, and the key from which those of the steps are derived."""

    def __init__(self, key: Any, method: Method, model: Model):
        leaves, about = jax.tree.flatten((method, model))
        self._arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]
        rest = tuple(_ARRAY if eqx.is_array(leaf) else leaf for leaf in leaves)
        self._about = (about, rest)
        self._method, self._model = method, model
        # without equinox's wrapping of methods, which costs more than they do
        self.particles = partial(type(method).particles, method)
        self.parameters = partial(type(method).parameters, method)
        self._is_full = partial(type(method).is_full, method)
        self._key = jax.random.key_data(key) if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        self.weighs = type(method).weigh is not Method.weigh
        self._own: dict[tuple, _Compiled] = {}  # the same, without what all steps of this stream share

    def __call__(self, number: int, state: State, row: Row, what: str) -> tuple[State, Info]:
        """State and info after one more row, whose step has this number; `what` names it where it leaves no
        posterior."""
        shapes, arguments = self._arguments(number, state, row)
        found = self._function(try_weighing, shapes)(*arguments) if self.weighs else None
        if found is not None and not found[3] and self._is_full(state.own):  # weighing is never enough for a full one
            state = _with_room_compiled(self._method, self._model, state, row.observation, row.given)
            shapes, arguments = self._arguments(number, state, row)
            found = self._function(try_weighing, shapes)(*arguments)
        if found is None or not found[3]:
            found = self._function(advance if found is None else advance_by_moving, shapes)(*arguments)
        after, info, fault = found[:3]
        if fault:
            raise LikelihoodError(fault_in_words(int(fault), what, float(info.undefined or 0.0)))
        return after, info

    def weighed(self, number: int, state: State, row: Row) -> tuple[State, Info, bool] | None:
        """The cheap try by itself: state, info, and whether it is enough; None where it leaves no posterior."""
        shapes, arguments = self._arguments(number, state, row)
        after, info, fault, enough = self._function(try_weighing, shapes)(*arguments)
        return None if fault else (after, info, bool(enough))

    def _arguments(self, number: int, state: State, row: Row) -> tuple[tuple, tuple]:
        """The structures of state and row, and everything as flat arrays."""
        state_leaves, state_structure = jax.tree.flatten(state)
        row_leaves, row_structure = jax.tree.flatten(row)
        arguments = (self._key, np.asarray(number, np.int32), self._arrays, state_leaves, row_leaves)
        return (state_structure, row_structure), arguments

    def _function(self, function: Callable, shapes: tuple) -> _Compiled:
        known = self._own.get((function, shapes))
        if known is None:
            name = (function, *self._about, *shapes)
            known = _compiled.get(name)
            if known is None:
                known = _compiled[name] = _Compiled(function, *self._about, *shapes)
            self._own[function, shapes] = known
        return known
