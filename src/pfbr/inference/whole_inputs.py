"""Inputs that are whole numbers where a model indexes with them, such as which of its sensors reports."""

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.models.base import Model, StateSpaceModel, has_parameters
from pfbr.models.conditions import Conditions, bind
from pfbr.models.needs import all_needs


def needs_whole_inputs(model: Model, inputs: Any, shape: tuple[int, ...] | None) -> bool:
    """Whether the model's methods take these inputs as whole numbers only, as their traces show.

    Real numbers are tried first: a year is a covariate that may be 1950.5 tomorrow.
    """
    if not all(np.all(leaf == np.round(leaf)) for leaf in jax.tree.leaves(inputs)):
        return False
    return not _traces(model, inputs, shape) and _traces(model, jax.tree.map(as_whole, inputs), shape)


def as_whole(values: Any) -> np.ndarray:
    """As whole numbers, or an error that names the first that is none."""
    leaf = np.asarray(values)
    broken = leaf[leaf != np.round(leaf)]
    if broken.size:
        raise InputError(
            f"`inputs` holds {broken.flat[0]:g} where the model needs whole numbers: it indexes with them."
        )
    return leaf.astype(np.int32)


def _traces(model: Model, inputs: Any, shape: tuple[int, ...] | None) -> bool:
    """Whether transition and likelihood can be traced with these inputs."""
    one = jnp.ones(())
    params = jax.eval_shape(model.sample_parameters, jax.random.key(0)) if has_parameters(model) else None  # type: ignore[attr-defined]
    params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), params)
    given = Conditions(one, one if "time" in all_needs(model) else None, inputs, None, params)
    bound: Any = bind(model, given, shape=shape)

    def both(key, x):
        moved = bound.sample_transition(key, x) if isinstance(model, StateSpaceModel) else x
        return moved, bound.log_likelihood(moved, jnp.zeros(shape or (1,)))

    try:
        jax.eval_shape(both, jax.random.key(0), jnp.zeros(int(model.dim)))
    except TypeError:  # what JAX raises for an index that is no whole number
        return False
    except Exception:  # anything else is the model's own fault, told where its methods are checked
        return True
    return True
