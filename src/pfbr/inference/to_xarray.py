"""A recorded stream, or many, as an xarray Dataset: labelled by real times and by the names of streams."""

import importlib
from typing import Any

import jax
import numpy as np

from pfbr.errors import InputError
from pfbr.inference.display.columns import time_coordinate
from pfbr.inference.frame_trace import StreamsTrace
from pfbr.inference.posterior import Trace


def to_xarray(trace: Trace, *, name: str = "x") -> Any:
    """Equally weighted draws of every unknown (…, draw, …), and what was said about each step.

    A single stream has the dimension `time` where times came with it, else `stage`; many of one length have `stream`
    and `stage`; the streams of a frame have `row`, in the frame's order, with the coordinates `stream` and `time`.
    Unknowns have the names and shapes that the model gives them; a plain vector is called `name`.
    """
    if not isinstance(trace, Trace):
        raise InputError(f"expected a Trace (pfbr.run); got {type(trace).__name__}.")
    xarray = _xarray()
    lead, coords = _lead(trace)
    variables: dict[str, Any] = {}
    for key, values in named_leaves(trace.samples, name).items():
        variables[key] = ((*lead, "draw", *_inner(key, values, len(lead) + 1)), values)
    if trace.parameters is not None:
        for key, values in named_leaves(trace.parameters.samples, "parameters").items():
            variables[key] = ((*lead, "draw", *_inner(key, values, len(lead) + 1)), values)
    for key, value in trace.info.items():
        told = np.asarray(value)
        free = key if key not in variables else f"info.{key}"
        variables[free] = ((*lead, *_inner(key, told, len(lead))), told)
    return xarray.Dataset(variables, coords)


def named_leaves(tree: Any, name: str) -> dict[str, np.ndarray]:
    """Leaves by name: a dict keeps its names, anything deeper its path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)

    def label(path) -> str:
        return ".".join(str(getattr(entry, "key", getattr(entry, "idx", entry))) for entry in path) or name

    return {label(path): np.asarray(leaf) for path, leaf in leaves}


def _lead(trace: Trace) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The dimensions of stages and streams, and their coordinates."""
    times = time_coordinate(trace.times)
    if isinstance(trace, StreamsTrace):
        held = np.array(trace.stream_of_rows, dtype=object if not _plain_ids(trace.streams) else None)
        return ("row",), {"stream": ("row", held), **({} if times is None else {"time": ("row", times)})}
    length = len(trace)
    stages = np.arange(1, length + 1)
    if trace.particles.ndim == 3:
        return (("stage",), {"stage": stages}) if times is None else (("time",), {"time": times})
    coords: dict[str, Any] = {"stream": np.arange(trace.particles.shape[0]), "stage": stages}
    if times is not None:
        coords["time"] = ("stage" if times.ndim == 1 else ("stream", "stage"), times)
    return ("stream", "stage"), coords


def _plain_ids(ids: list[Any]) -> bool:
    return all(isinstance(one, str) for one in ids) or all(isinstance(one, int | np.integer) for one in ids)


def _inner(key: str, values: np.ndarray, outer: int) -> tuple[str, ...]:
    return tuple(f"{key}_dim_{i}" for i in range(values.ndim - outer))


def _xarray() -> Any:
    try:
        return importlib.import_module("xarray")
    except ImportError:
        raise InputError('the export needs xarray: install it with `pip install "pfbr[arviz]"`.') from None
