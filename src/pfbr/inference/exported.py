"""One compiled step as files: StableHLO that runs with jax alone, without pfbr and without the model's code.

`start` makes the state before any observation from a key; `step` takes a key, the number of the step, a state and one
row. What a row holds and what comes back is written down beside them, with the loader that runs them.
"""

import hashlib
import importlib.util
import json
from importlib import resources
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import export
from jax import numpy as jnp

from pfbr.checks import checked_num_particles
from pfbr.errors import InputError
from pfbr.inference.method import Given, Method, State, advance, start, step_key
from pfbr.inference.registry import as_method
from pfbr.inference.rows import RowReader
from pfbr.io.files import write_bytes, write_text
from pfbr.models.base import Model
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles
from pfbr.version import VERSION

FORMAT = 1
LOADER = "pfbr_step.py"
PLATFORMS = ("cpu", "cuda", "tpu")


def export_step(
    model: Model,
    directory: Path,
    *,
    method: str | Method = "auto",
    num_particles: int = 256,
    history: int = 256,
    platforms: tuple[str, ...] = ("cpu",),
) -> dict[str, Any]:
    """Write the step of this method on this model to a directory; what the description there says is returned.

    The past that the default method keeps is part of a state, so that `history` is smaller here than in a session.
    """
    unknown = sorted(set(platforms) - set(PLATFORMS))
    if unknown or not platforms:
        raise InputError(f"`platforms` must be some of {', '.join(PLATFORMS)}; got {unknown or 'none'}.")
    if importlib.util.find_spec("flatbuffers") is None:
        raise InputError('an exported step is written with flatbuffers: pip install "pfbr[export]".')
    model = checked_methods_of(checked_model(model))
    chosen = as_method(method, model, history=history)
    count = checked_num_particles(num_particles, dim=int(model.dim))
    row = RowReader(model).example()
    masked = row._replace(observed=np.ones(np.shape(row.observation), bool))
    conditions = jax.tree.map(jnp.asarray, masked.conditions(model))
    shape = np.shape(row.observation)
    key = jax.random.key_data(jax.random.key(0))

    def begin(key_data: Any) -> list[Any]:
        state = start(jax.random.wrap_key_data(key_data), chosen, model, count, conditions, shape)
        return jax.tree.leaves(state)

    skeleton = eqx.filter_eval_shape(
        lambda k: start(jax.random.wrap_key_data(k), chosen, model, count, conditions, shape), key
    )
    structure = jax.tree.structure(skeleton)
    inputs, inputs_structure = jax.tree.flatten(row.inputs)

    def move(key_data: Any, number: Any, leaves: Any, observation: Any, observed: Any, dt: Any, given: Any) -> Any:
        state = jax.tree.unflatten(structure, leaves)
        elapsed = dt if row.dt is not None else None
        beside = Given(elapsed, jax.tree.unflatten(inputs_structure, given), observed)
        own_key = step_key(jax.random.wrap_key_data(key_data), number)
        after, info = advance(own_key, chosen, model, state, observation, beside)
        return jax.tree.leaves(after), _answer(chosen, model, after, info)

    shapes = jax.tree.leaves(skeleton)
    real = jnp.result_type(float)
    seen = jax.ShapeDtypeStruct(shape, bool)
    arguments = (key, np.int32(1), shapes, row.observation, seen, jax.ShapeDtypeStruct((), real), inputs)
    specs = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), a.dtype), arguments)
    files = {
        "start.bin": bytes(export.export(jax.jit(begin), platforms=platforms)(specs[0]).serialize()),
        "step.bin": bytes(export.export(jax.jit(move), platforms=platforms)(*specs).serialize()),
    }
    document = {
        "format": FORMAT,
        "pfbr": VERSION,
        "jax": jax.__version__,
        "model": type(model).__name__,
        "method": type(chosen).__name__,
        "particles": count,
        "platforms": list(platforms),
        "precision": str(real),
        "observation": list(shape),
        "takes_time": row.dt is not None,
        "inputs": [{"name": n, "shape": list(leaf.shape), "dtype": str(leaf.dtype)} for n, leaf in _named(row.inputs)],
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_bytes(directory / name, content)
    loader = resources.files("pfbr.inference").joinpath("exported_loader.py").read_text(encoding="utf-8")
    write_text(directory / LOADER, loader)
    write_text(directory / "step.json", json.dumps(document, indent=2) + "\n")  # the last one: now it is whole
    return document


def _answer(method: Method, model: Model, state: State, info: Any) -> dict[str, Any]:
    """What a caller wants to know, as named arrays."""
    particles: Particles = method.particles(state.own)
    answer = {"particles": particles.points, "log_weights": particles.log_weights}
    unknowns = Unknowns.of(model)
    if unknowns is not None:
        answer |= {f"unknown.{name}": value for name, value in jax.vmap(unknowns.constrain)(particles.points).items()}
    parameters = method.parameters(model, state.own)
    answer |= {f"parameter.{name}": leaf for name, leaf in _named(parameters)}
    return answer | {f"info.{name}": jnp.asarray(value) for name, value in info.items()}


def _named(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree by their paths."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]
