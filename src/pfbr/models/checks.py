"""What a user's model and observations look like, found out once, before anything is computed with them."""

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.checks import as_array
from pfbr.errors import InputError, ModelError
from pfbr.models.base import Model, StateSpaceModel
from pfbr.models.conditions import bind, conditions_of, example_of, observation_shape
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
    dim = getattr(model, "dim", None)
    if dim is None:
        raise ModelError(f"{name} must have `dim`, the number of its unknowns, or `unknowns`, a dict that names them.")
    if not isinstance(dim, int | np.integer) or isinstance(dim, bool) or dim < 1:
        raise ModelError(f"`{name}.dim` must be a whole number of at least 1; got {dim!r}.")
    inner: Any = model
    while inner is not None:
        declared(type(inner))  # type: ignore[arg-type]
        inner = getattr(inner, "model", None)
    return model


def checked_methods_of(model: Model) -> Model:
    """Whether the model's methods return what they should, found out before minutes are spent on them."""
    example = example_of(model)
    if example is None:
        return model  # its inputs are not known yet: looked at with the first observation
    key, x = jax.random.key(0), jnp.zeros(int(model.dim))
    drawn = _traced(example, "sample_prior", key)
    if drawn.shape != x.shape:
        raise ModelError(f"`sample_prior` must return shape {x.shape} (dim = {x.shape[0]}); it returns {drawn.shape}.")
    if _traced(example, "log_prior", x).shape != ():
        raise ModelError("`log_prior(x)` must return one number for one x; sum over the coordinates.")
    if isinstance(example, StateSpaceModel):
        moved = _traced(example, "sample_transition", key, x)
        if moved.shape != x.shape:
            raise ModelError(f"`sample_transition` must return shape {x.shape}, as x has; it returns {moved.shape}.")
    shape = observation_shape(example)
    if shape is not None:
        _check_likelihood(example, shape)
    return model


def _check_likelihood(example: Model, shape: tuple[int, ...]) -> None:
    bound = bind(example, conditions_of(example), shape=shape)
    found = _traced(bound, "each_log_likelihood", jnp.zeros(int(example.dim)), jnp.zeros(shape))
    if found.shape not in ((), shape):
        raise ModelError(
            "`log_likelihood(x, observation)` must return one number, or one for each component of the observation "
            f"(shape {shape}); it returns shape {found.shape}."
        )


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


def _traced(model: Model, method: str, *args):
    inner = getattr(model, "model", model)
    try:
        return jax.eval_shape(getattr(model, method), *args)
    except ModelError:
        raise
    except Exception as error:
        method = method.removeprefix("each_")
        raise ModelError(f"`{type(inner).__name__}.{method}` failed on an example: {error}") from error
