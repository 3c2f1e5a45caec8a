"""The edge: what a user passes in is looked at once, here; inside, everything is trusted."""

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import InputError
from pfbr.typing import Numbers


def checked_key(key) -> Array:
    """A JAX key, from a whole number or as it is."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if not 0 <= key < 2**63:
            raise InputError(f"a seed is a whole number from 0 to 2⁶³ − 1; got {key}.")
        return jax.random.key(int(key))
    if not isinstance(key, jax.Array):
        raise InputError(f"`key` must be a whole number or a JAX key, e.g. jax.random.key(0); got {key!r}.")
    new_style = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if key.shape != (() if new_style else (2,)) or not (new_style or key.dtype == jnp.uint32):
        raise InputError(
            f"`key` must be one JAX key, e.g. jax.random.key(0); got an array of {key.dtype} with shape {key.shape}."
        )
    return key


def checked_count(name: str, value, *, least: int, why: str = "") -> int:
    """A whole number of at least `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise InputError(f"`{name}` must be a whole number; got {value!r}.")
    if value < least:
        raise InputError(f"`{name}` must be at least {least}{', ' + why if why else ''}; got {value}.")
    return int(value)


def checked_num_particles(num_particles) -> int:
    return checked_count("num_particles", num_particles, least=2, why="since a set of particles carries its own spread")


def as_array(values: Numbers, name: str, *, gaps: bool = False) -> np.ndarray:
    """Real numbers in the precision in use; infinite ones are refused, and NaN where there may be no `gaps`."""
    try:
        if np.iscomplexobj(values):
            raise InputError(
                f"`{name}` holds complex numbers; pass the real and the imaginary part as two real values."
            )
        with np.errstate(over="ignore"):  # a number beyond the precision in use becomes inf, and is refused as such
            array = np.asarray(values, dtype=float).astype(jnp.result_type(float))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`{name}` must be an array of numbers; got {type(values).__name__} ({error}).") from None
    bad = ~np.isfinite(array) if not gaps else np.isinf(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f" at index {where}" if where else ""
        hint = "Only NaN may stand for what is missing." if gaps else "It must be finite."
        raise InputError(f"`{name}` holds {float(array[where])}{place}. {hint}")
    return array
