"""A likelihood is one number, or one for each component; components that were not seen must not count."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.judging.model_check.findings import Notebook
from pfbr.judging.model_check.laws import Case, at
from pfbr.models.base import Model
from pfbr.models.conditions import bind, unbound
from pfbr.models.needs import needs

ALIKE = 1e-3  # relative difference up to which two values are the same in single precision


def check_likelihood_shape(book: Notebook, model: Model, draw: Callable, cases: Case) -> tuple[int, ...]:
    """The shape of an observation."""
    case = at(cases, 0)
    drawn = book.shape_of("sample_observation", draw, book.key, case)
    if not isinstance(drawn, jax.ShapeDtypeStruct):
        book.stop("sample_observation", "returns an array", type(drawn).__name__, "Return one array.")
    shape = _raw_shape(book, model, case, drawn.shape)
    question = "returns one number, or one a component"
    if shape not in ((), drawn.shape):
        found = f"shape {shape} for an observation of shape {drawn.shape}"
        book.stop("log_likelihood", question, found, "Sum over what belongs together.")
    book.good("log_likelihood", question, f"shape {shape}")
    return drawn.shape


def _raw_shape(book: Notebook, model: Model, case: Case, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of what the user's own method returns, before components are summed."""
    bound: Any = bind(model, case.conditions, shape=shape)

    def raw(x, observation):
        return unbound(bound).log_likelihood(bound._own(x), observation, **bound._given("log_likelihood"))

    value = book.shape_of("log_likelihood", raw, case.x, jnp.zeros(shape, jnp.result_type(float)))
    if not isinstance(value, jax.ShapeDtypeStruct):
        book.stop("log_likelihood", "returns one number, or one a component", type(value).__name__, "Return an array.")
    return value.shape


def check_gaps(book: Notebook, model: Model, cases: Case, observations: jax.Array) -> None:
    """Half of the components are hidden, and then changed: the likelihood must not notice."""
    shape = observations.shape[1:]
    if int(np.prod(shape)) < 2:
        return
    question, masks = "leaves out what was not observed", "observed" in needs(model, "log_likelihood")
    if not masks and _raw_shape(book, model, at(cases, 0), shape) == ():
        book.note(
            "log_likelihood",
            question,
            "one number for all components: an observation is there or not",
            "For gaps in part return one number a component, or name `observed`.",
        )
        return

    def both(key, case, observation):
        seen = jax.random.bernoulli(key, 0.5, shape)
        bound = bind(model, dataclasses.replace(case.conditions, observed=seen), shape=shape)
        changed = jnp.where(seen, observation, observation + 1.0)
        return bound.log_likelihood(case.x, observation), bound.log_likelihood(case.x, changed)

    keys = jax.random.split(book.key_of("gaps"), len(observations))
    before, after = (np.asarray(v) for v in book.call("log_likelihood", jax.vmap(both), keys, cases, observations))
    off = ~(np.abs(before - after) <= ALIKE * (1 + np.abs(before)))
    if off.any():
        found = f"changes with components that were not seen, in {100 * off.mean():.0f} % of the cases"
        advice = "Use `observed` to leave them out." if masks else "Let each number depend on its own component alone."
        book.fault("log_likelihood", question, found, advice)
    else:
        book.good("log_likelihood", question, "by the mask `observed`" if masks else "one number a component")
