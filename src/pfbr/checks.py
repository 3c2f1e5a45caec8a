"""The edge: what a user passes in is looked at once, here; inside, everything is trusted."""

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, ArrayLike

from pfbr.errors import InputError, ModelError
from pfbr.models.base import Model, observation_shape


def checked_key(key) -> Array:
    """A JAX key; a plain number is the commonest slip."""
    if isinstance(key, int | np.integer):
        raise InputError(f"`key` must be a JAX key; got the number {key}. Write jax.random.key({key}).")
    if not isinstance(key, jax.Array):
        raise InputError(f"`key` must be a JAX key, e.g. jax.random.key(0); got {type(key).__name__}.")
    new_style = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if key.shape != (() if new_style else (2,)) or not (new_style or key.dtype == jnp.uint32):
        raise InputError(
            f"`key` must be one JAX key, e.g. jax.random.key(0); got an array of {key.dtype} with shape {key.shape}."
        )
    return key


def checked_model(model) -> Model:
    if isinstance(model, type):
        raise ModelError(f"`model` must be an instance; got the class {model.__name__}. Write {model.__name__}(…).")
    if not isinstance(model, Model):
        raise ModelError(
            f"`model` must be a pfbr.Model (or a pfbr.StateSpaceModel); got {type(model).__name__}. "
            "Derive your class from pfbr.Model."
        )
    return model


def checked_num_particles(num_particles) -> int:
    if not isinstance(num_particles, int | np.integer) or isinstance(num_particles, bool):
        raise InputError(f"`num_particles` must be a whole number; got {num_particles!r}.")
    if num_particles < 2:
        raise InputError(
            f"`num_particles` must be at least 2, since a set of particles carries its own spread; got {num_particles}."
        )
    return int(num_particles)


def _as_finite_array(values: ArrayLike, name: str) -> np.ndarray:
    try:
        if not np.iscomplexobj(values):
            with np.errstate(over="ignore"):  # a number beyond the precision in use becomes inf, and is refused as such
                array = np.asarray(values, dtype=float).astype(jnp.result_type(float))
        else:
            array = None
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}` must be an array of numbers; got {type(values).__name__} ({error}).") from None
    if array is None:
        raise InputError(f"`{name}` holds complex numbers; pass the real and the imaginary part as two real values.")
    if not np.all(np.isfinite(array)):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(
            f"`{name}` holds {float(array[where])} at index {where}. Leave out observations that are missing: "
            "an update needs a finite value."
        )
    return array


def checked_observation(model: Model, expected: tuple[int, ...] | None, observation: ArrayLike) -> np.ndarray:
    """One observation of the `expected` shape (`observation_shape` of the model, found once and not at every update);
    a number will do where the model has one value."""
    array = _as_finite_array(observation, "observation")
    if expected is None or array.shape == expected:
        return array
    if array.size == 1 and expected == (1,):
        return array.reshape(1)
    hint = " For many observations use `pfbr.run`." if array.ndim > len(expected) else ""
    raise InputError(
        f"`observation` must have shape {expected} for this {type(model).__name__}; got {array.shape}.{hint}"
    )


def checked_observations(model: Model, observations: ArrayLike) -> tuple[np.ndarray, bool]:
    """A stream (T, …) or many (S, T, …), and whether it is many."""
    array = _as_finite_array(observations, "observations")
    if array.size == 0:
        raise InputError(f"`observations` is empty (shape {array.shape}): there is nothing to learn from.")
    expected = observation_shape(model)
    if expected is None:
        if array.ndim not in (2, 3):
            raise InputError(f"`observations` must have shape (T, k) or (S, T, k); got {array.shape}.")
        return array, array.ndim == 3
    if expected == (1,) and array.ndim == 1:
        return array[:, None], False
    inner = array.shape[array.ndim - len(expected) :] if len(expected) <= array.ndim else None
    extra = array.ndim - len(expected)
    if inner != expected or extra not in (1, 2):
        wanted = ", ".join(str(n) for n in expected)
        raise InputError(
            f"`observations` must have shape (T, {wanted}) or (S, T, {wanted}) for this {type(model).__name__}; "
            f"got {array.shape}."
        )
    return array, extra == 2


def checked_methods_of(model: Model) -> Model:
    """Whether the model's methods return what they should, found out before minutes are spent on them."""
    key, x = jax.random.key(0), jnp.zeros(int(model.dim))
    drawn = _traced(model, "sample_prior", key)
    if drawn.shape != x.shape:
        raise ModelError(f"`sample_prior` must return shape {x.shape} (dim = {model.dim}); it returns {drawn.shape}.")
    if _traced(model, "log_prior", x).shape != ():
        raise ModelError("`log_prior(x)` must return one number for one x; sum over the coordinates.")
    shape = observation_shape(model)
    if shape is not None and _traced(model, "log_likelihood", x, jnp.zeros(shape)).shape != ():
        raise ModelError("`log_likelihood(x, observation)` must return one number; sum over the coordinates.")
    return model


def _traced(model: Model, method: str, *args):
    try:
        return jax.eval_shape(getattr(model, method), *args)
    except Exception as error:
        raise ModelError(f"`{type(model).__name__}.{method}` failed on an example: {error}") from error
