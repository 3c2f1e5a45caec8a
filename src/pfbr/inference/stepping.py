"""One step of a live stream, compiled: the cheap try first, the whole step where that is not enough.

What never changes during a stream, method and model, is taken apart once; a step then hands flat arrays to a compiled
function. General filtering of arguments at every call would cost more than the step.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

from pfbr.inference.info import Info
from pfbr.inference.method import Method, State, advance, start, step_key, try_weighing
from pfbr.inference.refusal import Fault, faults, refuse_without_posterior
from pfbr.inference.rows import Row
from pfbr.models.base import Model

start_compiled = eqx.filter_jit(start)  # op by op, the first particles would take longer to compile


class _Compiled:
    """A function of flat arrays, and the structure of what it returns, known once it was traced."""

    def __init__(self, function: Callable, about: Any, rest: tuple, state: Any, row: Any):
        self._structure: Any = None

        def flat(key_data, number, arrays, state_leaves, row_leaves):
            leaves = iter(arrays)
            method, model = jax.tree.unflatten(about, [next(leaves) if one is _ARRAY else one for one in rest])
            key = step_key(jax.random.wrap_key_data(key_data), number)
            before, this = jax.tree.unflatten(state, state_leaves), jax.tree.unflatten(row, row_leaves)
            result = function(key, method, model, before, this.observation, this.given)
            found, self._structure = jax.tree.flatten(result)
            return found

        self._call = jax.jit(flat)

    def __call__(self, *arguments) -> Any:
        leaves = self._call(*arguments)
        return jax.tree.unflatten(self._structure, leaves)


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
        # without equinox's wrapping of methods, which costs more than they do
        self.particles = partial(type(method).particles, method)
        self.parameters = partial(type(method).parameters, method)
        self._key = jax.random.key_data(key) if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        self.weighs = type(method).weigh is not Method.weigh
        self._own: dict[tuple, _Compiled] = {}  # the same, without what all steps of this stream share

    def __call__(self, number: int, state: State, row: Row, what: str) -> tuple[State, Info]:
        """State and info after one more row, whose step has this number; `what` names it where it leaves no
        posterior."""
        shapes, arguments = self._arguments(number, state, row)
        found = self._function(try_weighing, shapes)(*arguments) if self.weighs else None
        after, info = found[:2] if found is not None and found[2] else self._function(advance, shapes)(*arguments)
        refuse_without_posterior(self.particles(after.own), info, lambda index: what)
        return after, info

    def weighed(self, number: int, state: State, row: Row) -> tuple[State, Info, bool] | None:
        """The cheap try by itself: state, info, and whether it is enough; None where it leaves no posterior."""
        shapes, arguments = self._arguments(number, state, row)
        after, info, enough = self._function(try_weighing, shapes)(*arguments)
        fine = faults(self.particles(after.own), info) == Fault.NONE
        return (after, info, bool(enough)) if fine else None

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
