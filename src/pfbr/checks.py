"""The edge: what a user passes in is looked at once, here; inside, everything is trusted."""

import contextlib
import math
import os
from pathlib import Path

import jax
import numpy as np
from jax import numpy as jnp
from jaxtyping import Array

from pfbr.errors import InputError
from pfbr.typing import Numbers

SHARE = 0.6  # of the machine's memory that one call may take at least: above that it would end by being killed


def checked_key(key) -> Array:
    """A JAX key, from a whole number or as it is."""
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if not 0 <= key < 2**63:
            raise InputError(f"a seed is a whole number from 0 to 2⁶³ − 1; got {key}.")
        low, high = int(key) % 2**32, int(key) // 2**32
        # in single precision JAX looks at the lower 32 bits alone
        return jax.random.fold_in(jax.random.key(low), high) if high else jax.random.key(low)
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
        raise InputError(f"`{name}` must be a whole number; got {shortened(value)}.")
    if value < least:
        raise InputError(f"`{name}` must be at least {least}{', ' + why if why else ''}; got {shortened(value)}.")
    return int(value)


def shortened(value) -> str:
    """A value as it would be written, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # what cannot even be written: a number of 5,000 digits, an object that fails
        text = f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def checked_num_particles(num_particles, *, dim: int = 1, sets: int = 1) -> int:
    """How many particles; `sets` of them in `dim` dimensions, three copies of each, must fit into this machine."""
    why = "since a set of particles carries its own spread"
    count = checked_count("num_particles", num_particles, least=2, why=why)
    kept = f" at {sets} stages" if sets > 1 else ""
    check_memory(f"`num_particles` = {count}{kept}", 12 * count * dim * sets, "Fewer particles are enough.")
    return count


def checked_amount(name: str, value, *, least: float = 0.0, most: float = math.inf, above: bool = False) -> float:
    """A finite number of at least `least` (or `above` it), at most `most`."""
    known = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not known or not math.isfinite(value):
        raise InputError(f"`{name}` must be a finite number; got {value!r}.")
    if value < least or value > most or (above and value == least):
        bounds = f"{'above' if above else 'at least'} {least:g}" + (f" and at most {most:g}" if most < math.inf else "")
        raise InputError(f"`{name}` must be {bounds}; got {value}.")
    return float(value)


def checked_scale(name: str, value) -> None:
    """A positive, finite number; one that is traced, or one for each of many models, is trusted."""
    if not isinstance(value, jax.Array | np.ndarray):
        checked_amount(name, value, above=True)


def check_memory(what: str, least_bytes: int, advice: str) -> None:
    """Refuse what would take more than `SHARE` of this machine's memory, and say how much that is."""
    there = machine_memory()
    if least_bytes > SHARE * there:
        raise InputError(f"{what} takes at least {in_bytes(least_bytes)}; this machine has {in_bytes(there)}. {advice}")


def machine_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's where that is less."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not told: as on a small machine
        found = 8 * 2**30
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found


def in_bytes(size: float) -> str:
    """1.5 GB and the like."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} EB"


# What NumPy is asked to read: of any other object that has items it would ask for items of items without end.
_SEQUENCES = (list, tuple, int, float, complex, np.generic, np.ndarray, str, bytes, type(None))
_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__", "__float__")


def precision() -> type[np.floating]:
    """Of JAX's numbers now; `jnp.result_type(float)` says the same and takes ten times as long, at every update."""
    return np.float64 if jax.config.jax_enable_x64 else np.float32  # type: ignore[attr-defined]


def as_array(values: Numbers, name: str, *, gaps: bool = False) -> np.ndarray:
    """Real numbers in the precision in use; infinite ones are refused, and NaN where there may be no `gaps`."""
    try:
        if isinstance(values, np.ma.MaskedArray):  # masked is not observed
            values = np.ma.filled(values.astype(float), np.nan)
        if not isinstance(values, _SEQUENCES) and not any(hasattr(values, name) for name in _PROTOCOLS):
            raise InputError(f"`{name}` must be an array of numbers; got {type(values).__name__}.")
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise InputError(
                f"`{name}` holds complex numbers; pass the real and the imaginary part as two real values."
            )
        texts = given.dtype.kind == "O" and any(isinstance(one, str | bytes) for one in given.flat)
        if given.dtype.kind not in "fiubO" or texts:  # dates and texts would turn into numbers without a word
            raise InputError(f"`{name}` must be an array of numbers; got {'texts' if texts else given.dtype}.")
        with np.errstate(over="ignore"):  # a number beyond the precision in use becomes inf, and is refused as such
            array = given.astype(float).astype(precision())
    except InputError:
        raise
    except Exception as error:  # what a user's own class raises when it is asked for its numbers, too
        said = shortened(str(error))
        raise InputError(f"`{name}` must be an array of numbers; got {type(values).__name__} ({said}).") from None
    bad = ~np.isfinite(array) if not gaps else np.isinf(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f" at index {where}" if where else ""
        hint = "Only NaN may stand for what is missing." if gaps else "It must be finite."
        raise InputError(f"`{name}` holds {float(array[where])}{place}. {hint}")
    return array
