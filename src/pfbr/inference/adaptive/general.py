"""The learned map that comes with the package, and its file."""

import functools
import os
from importlib import resources
from typing import Any

import jax
import numpy as np

from pfbr.flow.transport.network import untrained
from pfbr.flow.transport.transport import Transport
from pfbr.io import containers

KIND = "map"


def write(path: str | os.PathLike, transport: Transport, document: dict[str, Any]) -> None:
    """With how it was learned."""
    containers.write(path, KIND, document, containers.named_leaves(transport))


def read(path: str | os.PathLike) -> tuple[Transport, dict[str, Any]]:
    document, arrays = containers.read(path, KIND)
    width = arrays[next(iter(arrays))].shape[-1]
    structure = jax.eval_shape(lambda: Transport(untrained(jax.random.key(0), width=width)))
    return jax.tree.map(np.asarray, containers.filled(structure, arrays, path)), document


@functools.cache
def shipped() -> Transport:
    file = resources.as_file(resources.files("pfbr.inference.adaptive") / "general.pfbr")
    with jax.ensure_compile_time_eval(), file as path:  # numbers, also where it is first asked for inside of a trace
        return read(path)[0]
