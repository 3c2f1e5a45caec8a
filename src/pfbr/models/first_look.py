"""A model is looked at once, when it first comes in: what its methods return, and numbers at a handful of draws.

The methods are traced, which costs milliseconds, and then computed once, together, at `DRAWS` draws of the prior. What
needs many draws to see (a sampler and a density that do not belong together) is for `pfbr check`.
"""

import weakref
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import ModelError
from pfbr.models.base import Model, StateSpaceModel, has_observations, has_parameters, offers
from pfbr.models.conditions import Conditions, bind, example_of
from pfbr.models.faults import in_words
from pfbr.models.first_numbers import check_likelihood_values, check_numbers
from pfbr.models.traces import index_outside, same_constants, traced

_LOOKED_AT: dict[int, weakref.ref] = {}  # models by their identity: one object is looked at once


def look_at(model: Model) -> None:
    """Refuse a model whose methods cannot work, with the method and what it did; silent where there is nothing to say.

    Of a model that cannot tell its inputs or the shape of an observation, the likelihood is looked at with the first
    observation (`look_with`).
    """
    if id(model) in _LOOKED_AT or _is_traced(model):
        return
    example = _example(model)
    if example is not None:
        _shapes(model, example)
        check_numbers(model)
    _LOOKED_AT[id(model)] = weakref.ref(model, lambda _, key=id(model): _LOOKED_AT.pop(key, None))  # type: ignore[misc]


def waits_for_a_row(model: Model) -> bool:
    """Whether a part of the model can be looked at only when an observation is there."""
    return not has_observations(model) or _example(model) is None


def look_with(model: Model, conditions: Conditions, observation: np.ndarray, *, whole: bool) -> None:
    """The same with an observation and what came with it; `whole`: nothing of it is missing."""
    if _is_traced(model):
        return
    if has_parameters(model):
        params = _called(model, "sample_parameters", model.sample_parameters, jax.random.key(0))  # type: ignore[attr-defined]
        params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), params)
        conditions = eqx.tree_at(lambda c: c.params, conditions, params, is_leaf=lambda leaf: leaf is None)
    bound = bind(model, conditions, shape=observation.shape)
    if _example(model) is None:
        _prior_and_transition(model, bound)
    _likelihood(model, bound, observation.shape)
    if whole:
        check_likelihood_values(model, conditions, jnp.asarray(observation))


def _example(model: Model) -> Model | None:
    try:
        return example_of(model)
    except ModelError:
        raise
    except (Exception, SystemExit) as error:
        method = "sample_parameters" if has_parameters(model) else "sample_inputs"
        raise _failed(model, method, error) from error


def _shapes(model: Model, example: Model) -> None:
    key = jax.random.key(0)
    if has_parameters(model) and not offers(model, "log_parameters"):
        raise ModelError(
            f"{type(model).__name__} has `sample_parameters` and no `log_parameters(params)`: write the normalised log "
            "density of its draws."
        )
    _prior_and_transition(model, example)
    if has_observations(model):
        drawn = _called(model, "sample_observation", example.sample_observation, key, _point(model))
        shape = _array(model, "sample_observation", drawn, "the observation").shape
        if jnp.issubdtype(drawn.dtype, jnp.complexfloating):
            raise ModelError(f"`{_name(model)}.sample_observation` returns complex numbers; return their parts as two.")
        conditions = getattr(example, "conditions", Conditions())
        _likelihood(model, bind(model, conditions, shape=shape), shape)


def _prior_and_transition(model: Model, bound: Any) -> None:
    key, x = jax.random.key(0), _point(model)
    drawn = _called(model, "sample_prior", bound.sample_prior, key)
    _vector(model, "sample_prior", drawn, x.shape, f"dim = {x.shape[0]}")
    _density(model, "log_prior", _called(model, "log_prior", _as_written(bound, "log_prior"), x))
    if offers(model, "prior_from_normal"):
        made = _called(model, "prior_from_normal", bound.prior_from_normal, x)
        if made is not None:
            _vector(model, "prior_from_normal", made, x.shape, f"dim = {x.shape[0]}")
    if isinstance(model, StateSpaceModel):
        moved = _called(model, "sample_transition", bound.sample_transition, key, x)
        _vector(model, "sample_transition", moved, x.shape, "as x has")
        if offers(model, "log_transition"):
            _density(model, "log_transition", _called(model, "log_transition", bound.log_transition, x, x))


def _likelihood(model: Model, bound: Any, shape: tuple[int, ...]) -> None:
    observation = jax.ShapeDtypeStruct(shape, jnp.result_type(float))
    found = _called(model, "log_likelihood", _as_written(bound, "log_likelihood"), _point(model), observation)
    array = _array(model, "log_likelihood", found, "one number")
    _real(model, "log_likelihood", array)
    if array.shape not in ((), shape):
        raise ModelError(
            f"`{_name(model)}.log_likelihood(x, observation)` must return one number, or one for each component of the "
            f"observation (shape {shape}); it returns shape {array.shape}."
        )


def _as_written(bound: Any, method: str) -> Callable:
    """A density as the user's own method returns it, before anything is added to it."""
    if not hasattr(bound, "conditions"):
        return getattr(bound, method)
    return lambda x, *args: getattr(bound.model, method)(bound._own(x), *args, **bound._given(method))


def _called(model: Model, method: str, call: Callable, *args: Any) -> Any:
    """Shapes of what a method returns; an error in it, an index outside, and impure code are refused."""
    try:
        program, returned = traced(call, *args)
        again, _ = traced(call, *args)
    except (Exception, SystemExit) as error:
        raise _failed(model, method, error) from error
    outside = index_outside(program)
    if outside is not None:
        raise ModelError(
            f"`{_name(model)}.{method}` looks at index {outside.place} of an axis with {outside.size} "
            f"{'entry' if outside.size == 1 else 'entries'}: JAX would take another entry without a word. Indices run "
            f"from 0 to {outside.size - 1}."
        )
    if not same_constants(program, again):
        raise ModelError(
            f"`{_name(model)}.{method}` is not the same when it is called twice: it uses random numbers, a clock or a "
            "counter of its own. Draw with jax.random and the key that is passed; keep everything else fixed."
        )
    return returned


def _vector(model: Model, method: str, value: Any, shape: tuple[int, ...], why: str) -> None:
    array = _array(model, method, value, f"an array of shape {shape}")
    if array.shape != shape:
        raise ModelError(f"`{_name(model)}.{method}` must return shape {shape} ({why}); it returns {array.shape}.")
    _real(model, method, array)


def _density(model: Model, method: str, value: Any) -> None:
    array = _array(model, method, value, "one number")
    if array.shape != ():
        raise ModelError(
            f"`{_name(model)}.{method}` must return one number for one x; it returns shape {array.shape}. Sum over the "
            "coordinates."
        )
    _real(model, method, array)


def _array(model: Model, method: str, value: Any, expected: str) -> jax.ShapeDtypeStruct:
    if not isinstance(value, jax.ShapeDtypeStruct):
        got = "nothing (None)" if value is None else f"a {type(value).__name__}"
        raise ModelError(f"`{_name(model)}.{method}` must return {expected}; it returns {got}.")
    return value


def _real(model: Model, method: str, array: jax.ShapeDtypeStruct) -> None:
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ModelError(
            f"`{_name(model)}.{method}` must return floats; it returns {array.dtype}. Write 0.0 for 0, or convert with "
            "`.astype(float)`; a density is real."
        )


def _failed(model: Model, method: str, error: BaseException) -> ModelError:
    found, advice = in_words(error)
    return ModelError(f"`{_name(model)}.{method}` failed on an example: {found} {advice}".replace("\n", " "))


def _name(model: Any) -> str:
    return type(model).__name__


def _point(model: Model) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((int(model.dim),), jnp.result_type(float))


def _is_traced(model: Model) -> bool:
    """Whether this runs inside a compiled function, where nothing can be computed."""
    leaves = [jnp.zeros(()), *jax.tree.leaves(model)]
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
