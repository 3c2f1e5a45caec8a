"""What a user's model and observations look like, found out once, before anything is computed with them."""

from typing import Any

import numpy as np
from jax import numpy as jnp

from pfbr.checks import as_array, check_memory
from pfbr.errors import InputError, ModelError
from pfbr.models.base import Model
from pfbr.models.conditions import observation_shape
from pfbr.models.first_look import look_at
from pfbr.models.needs import declared
from pfbr.typing import Numbers


def checked_model(model) -> Model:
    """A model whose declarations can be read: an instance, with `dim` or `unknowns`, naming only what it can be
    given."""
    if isinstance(model, type):
        raise ModelError(f"`model` must be an instance; got the class {model.__name__}. Write {model.__name__}(…).")
    if not isinstance(model, Model):
        raise ModelError(
            f"`model` must be a pfbr.Model (or a pfbr.StateSpaceModel); got {type(model).__name__}. "
            "Derive your class from pfbr.Model."
        )
    name = type(model).__name__
    dim = _dim_of(model)
    if dim is None:
        raise ModelError(f"{name} must have `dim`, the number of its unknowns, or `unknowns`, a dict that names them.")
    if not isinstance(dim, int | np.integer) or isinstance(dim, bool) or dim < 1:
        raise ModelError(f"`{name}.dim` must be a whole number of at least 1; got {dim!r}.")
    check_memory(f"`{name}.dim` = {dim}", 64 * dim, "Fewer unknowns are needed.")
    inner: Any = model
    while inner is not None:
        declared(type(inner))  # type: ignore[arg-type]
        inner = getattr(inner, "model", None)
    return model


def _dim_of(model: Model) -> Any:
    try:
        return getattr(model, "dim", None)
    except Exception as error:  # a property that a user wrote
        raise ModelError(f"`{type(model).__name__}.dim` failed: {type(error).__name__}: {error}") from error


def checked_methods_of(model: Model) -> Model:
    """Whether the model's methods return what they should, found out once, before minutes are spent on them."""
    look_at(model)
    return model


def checked_observation(model: Model, expected: tuple[int, ...] | None, observation: Numbers | None) -> np.ndarray:
    """One observation of the `expected` shape (`observation_shape` of the model, found once and not at every update);
    a number will do where the model has one value, None where nothing was seen."""
    if observation is None:
        return np.full(expected or (), np.nan, jnp.result_type(float))
    array = as_array(observation, "observation", gaps=True)
    if expected is None and array.ndim == 0:
        return array.reshape(1)  # `observation[0]` and plain `observation` then both work in a likelihood
    if expected is None or array.shape == expected:
        return array
    if array.size == 1 and expected in ((1,), ()):
        return array.reshape(expected)
    if array.ndim == 0 and np.isnan(array):
        return np.full(expected, np.nan, array.dtype)
    hint = " For many observations use `pfbr.run`." if array.ndim > len(expected) else ""
    raise InputError(
        f"`observation` must have shape {expected} for this {type(model).__name__}; got {array.shape}.{hint}"
    )


def checked_observations(
    model: Model, observations: Numbers, expected: tuple[int, ...] | None = None
) -> tuple[np.ndarray, bool]:
    """A stream (T, …) or many (S, T, …), and whether it is many. NaN stands for what was not observed. The `expected`
    shape of one observation is the model's where it is not given."""
    array = as_array(observations, "observations", gaps=True)
    if array.size == 0:
        raise InputError(f"`observations` is empty (shape {array.shape}): there is nothing to learn from.")
    expected = observation_shape(model) if expected is None else expected
    if expected is None:
        if array.ndim not in (1, 2, 3):
            raise InputError(f"`observations` must have shape (T,), (T, k) or (S, T, k); got {array.shape}.")
        return array[:, None] if array.ndim == 1 else array, array.ndim == 3
    if expected == (1,) and array.ndim == 1:
        return array[:, None], False
    inner = array.shape[array.ndim - len(expected) :] if len(expected) <= array.ndim else None
    extra = array.ndim - len(expected)
    if inner != expected or extra not in (1, 2):
        wanted = "".join(f", {n}" for n in expected)
        raise InputError(
            f"`observations` must have shape (T{wanted or ','}) or (S, T{wanted}) for this {type(model).__name__}; "
            f"got {array.shape}."
        )
    return array, extra == 2
