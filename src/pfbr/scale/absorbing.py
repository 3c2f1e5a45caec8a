"""Rows of one stream in a compiled scan of fixed length: padding is skipped, and so is what leaves no posterior."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.inference.info import Info
from pfbr.inference.method import Method, State, advance, step_key
from pfbr.inference.refusal import Fault, step_fault
from pfbr.inference.rows import Row
from pfbr.models.base import Model
from pfbr.particles.particles import Particles
from pfbr.sharding import padded
from pfbr.typing import Key

LENGTHS = (8, 64)  # rows in a call: two compilations serve every stream


class Absorbed(eqx.Module):
    """After each row: particles, parameters, what the step said, and why it was refused (a `Fault`)."""

    particles: Particles
    parameters: Any
    info: Info
    fault: Any


class _Carried(eqx.Module):
    state: State
    waited: Array  # since the last row that was absorbed


def absorb(key: Key, method: Method, model: Model, state: State, rows: Row) -> list[tuple[State, Absorbed, int]]:
    """The rows in parts: the state after each part, what was said, and how many of its rows are real."""
    length = len(rows.observation)
    parts = []
    for begin in range(0, length, LENGTHS[-1]):
        part = jax.tree.map(lambda leaf, begin=begin: leaf[begin : begin + LENGTHS[-1]], rows)
        number = len(part.observation)
        size = next(size for size in LENGTHS if size >= number)
        state, said = _scanned(key, method, model, state, padded(part, size), np.arange(size) < number)
        parts.append((state, jax.tree.map(np.asarray, said), number))
    return parts


@eqx.filter_jit
def _scanned(
    key: Key, method: Method, model: Model, state: State, rows: Row, real: Array | np.ndarray
) -> tuple[State, Absorbed]:
    def one(carried, step):
        row, is_real = step

        def go_on(held):
            dt = None if row.dt is None else row.dt + held.waited
            given = Row(row.observation, row.observed, dt, row.inputs).given
            number = step_key(key, held.state.stage + 1)
            after, info = advance(number, method, model, held.state, row.observation, given)
            fault = step_fault(method.particles(after.own), info)
            fine = fault == int(Fault.NONE)
            kept = jax.tree.map(lambda new, old: jnp.where(fine, new, old), after, held.state)
            waited = held.waited if dt is None else jnp.where(fine, 0.0, dt)
            own = kept.own
            return _Carried(kept, waited), Absorbed(method.particles(own), method.parameters(model, own), info, fault)

        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(go_on, carried)[1])
        return jax.lax.cond(is_real, go_on, lambda held: (held, blank), carried)

    begun = _Carried(state, jnp.zeros((), state.time.dtype))
    last, said = jax.lax.scan(one, begun, (rows, real))
    return last.state, said
