"""What the files of sessions and panels have in common: where they come from, the key, rows, what tells the model."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.errors import FileError, InputError, PfbrError
from pfbr.inference.clock import UNITS
from pfbr.inference.fingerprint import Fingerprint, differences
from pfbr.inference.method import Method, State, start
from pfbr.inference.rows import Row
from pfbr.io import containers, trees
from pfbr.io.schema import TABLE, Kind, Optional, check_table, either, maybe, number, text
from pfbr.models.base import Model
from pfbr.particles.particles import Particles
from pfbr.version import VERSION

LAYOUT = 1  # of what stands in a file; a change that older files cannot be read with gets the next number
ROW = ("observation", "observed", "dt", "inputs")
PRINT = ("points", "params", "observations", "values")
TRUTH = Kind("true or false", lambda v: isinstance(v, bool))
DATE = Kind("a table with a `date`", lambda v: isinstance(v, dict) and isinstance(v.get("date"), str))
FIELDS: dict[str, Kind | Optional] = {
    "model": text(),
    "method": TABLE,
    "key": maybe(text()),
    "start": maybe(either(number(), DATE)),
    "time_unit": maybe(Kind(f"one of {', '.join(UNITS)}", lambda v: isinstance(v, str) and v in UNITS)),
    "example": maybe(TABLE),
    "fingerprint": TABLE,
}
Read = TypeVar("Read")


def checked(header: dict[str, Any], fields: dict[str, Kind | Optional], source: str, read: Callable[[], Read]) -> Read:
    """What `read` makes of a file of these fields; whatever it stumbles over, the file is refused by name."""
    check_origin(header, source)
    check_table(header, FIELDS | fields, source)
    try:
        return read()
    except FileError:
        raise
    except (PfbrError, ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if source in str(error):
            raise
        raise FileError(
            f"{source} was saved by pfbr {header.get('pfbr')} in a way that this one ({VERSION}) cannot read "
            f"({type(error).__name__}: {error}). Go on with that version, or begin again."
        ) from None


def check_particles(particles: Particles, source: str) -> None:
    """Refuse a state whose particles could never have been reached; one axis of streams may lead."""
    x, log_weights = np.asarray(particles.points), np.asarray(particles.log_weights)
    if not np.isfinite(x).all():
        raise FileError(f"{source} holds particles that are not finite. Make it again.")
    if np.isnan(log_weights).any() or (log_weights == np.inf).any() or not np.isfinite(log_weights).any(axis=-1).all():
        raise FileError(f"{source} holds weights of particles that are none. Make it again.")


def check_numbers(numbers: np.ndarray, what: str, source: str, *, whole_from: int | None = None) -> None:
    """Refuse numbers that are not finite, or, where whole ones are kept, not whole or too small."""
    kind = "f" if whole_from is None else "iu"
    if numbers.dtype.kind not in kind or not np.isfinite(numbers).all():
        raise FileError(f"{source} holds {what} that are not {'finite' if kind == 'f' else 'whole'}. Make it again.")
    if whole_from is not None and (numbers < whole_from).any():
        raise FileError(f"{source} holds {what} below {whole_from}. Make it again.")


def check_origin(header: dict[str, Any], source: str) -> None:
    """Refuse what this pfbr, or this precision, cannot go on with."""
    if header.get("layout") != LAYOUT:
        raise FileError(
            f"{source} was saved by pfbr {header.get('pfbr')} in layout {header.get('layout')}; this one ({VERSION}) "
            f"reads layout {LAYOUT}. Go on with that version."
        )
    precision = str(jnp.result_type(float))
    if header.get("precision") != precision:
        raise FileError(
            f"{source} was saved in {header.get('precision')}, and this process computes in {precision}: set JAX's "
            "`jax_enable_x64` as it was."
        )


def check_model(model: Model, fingerprint: Fingerprint, name: str, source: str) -> None:
    """Refuse another model than the one that was saved with, and say what differs."""
    found = differences(model, fingerprint)
    if found:
        raise InputError(
            f"`model` is not the one that {source} was saved with (a {name}): {'; '.join(found[:3])}. Restore with "
            "that model, or begin a new session with this one."
        )


def state_skeleton(method: Method, model: Model, num_particles: int, example: Row) -> State:
    """The structure of a state, with shapes in place of arrays."""
    conditions = jax.tree.map(jnp.asarray, example.conditions(model))
    begin = lambda key: start(key, method, model, num_particles, conditions, np.shape(example.observation))
    return eqx.filter_eval_shape(begin, jax.random.key(0))


def filled_state(skeleton: State, leaves: dict[str, np.ndarray], header: dict[str, Any], source: str) -> State:
    wanted = {name: (leaf.shape, leaf.dtype.kind) for name, leaf in named_shapes(skeleton).items()}
    found = {name: (leaf.shape, leaf.dtype.kind) for name, leaf in leaves.items()}
    if wanted != found:
        differ = sorted(n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n))
        raise FileError(
            f"{source} was saved by pfbr {header['pfbr']}, whose {header['method']['kind']} keeps other arrays than "
            f"that of this one ({VERSION}): {', '.join(differ[:3])}. Go on with that version, or begin again."
        )
    return containers.filled(skeleton, leaves, source)


def described_key(key: jax.Array, arrays: dict[str, np.ndarray]) -> str | None:
    """The name of its generator; None for a key of JAX's old style."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    arrays["key"] = np.asarray(jax.random.key_data(key) if typed else key)
    return str(jax.random.key_impl(key)) if typed else None


def rebuilt_key(generator: str | None, arrays: dict[str, np.ndarray]) -> jax.Array:
    data = jnp.asarray(arrays["key"])
    return data if generator is None else jax.random.wrap_key_data(data, impl=generator)


def described_moment(time: Any) -> Any:
    """A time as JSON: a number, or a date in words."""
    return time if isinstance(time, float) else {"date": str(time)}


def rebuilt_moment(document: Any) -> Any:
    return np.datetime64(document["date"], "us") if isinstance(document, dict) else float(document)


def described_fingerprint(fingerprint: Fingerprint, arrays: dict[str, np.ndarray]) -> Any:
    parts = {name: trees.described(getattr(fingerprint, name), f"fingerprint.{name}", arrays) for name in PRINT}
    return parts | {"row": described_row(fingerprint.row, "fingerprint.row", arrays)}


def rebuilt_fingerprint(document: Any, arrays: dict[str, np.ndarray], source: str) -> Fingerprint:
    parts = {name: jax.tree.map(jnp.asarray, trees.rebuilt(document[name], arrays, source)) for name in PRINT}
    return Fingerprint(row=rebuilt_row(document["row"], arrays, source), **parts)


def described_row(row: Row | None, name: str, arrays: dict[str, np.ndarray]) -> Any:
    if row is None:
        return None
    return {field: trees.described(getattr(row, field), f"{name}.{field}", arrays) for field in ROW}


def rebuilt_row(document: Any, arrays: dict[str, np.ndarray], source: str) -> Row | None:
    if document is None:
        return None
    return Row(**{field: trees.rebuilt(document[field], arrays, source) for field in ROW})


def named_shapes(skeleton: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(skeleton)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves if hasattr(leaf, "shape")}
