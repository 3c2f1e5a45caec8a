"""Posteriors for ArviZ: its plots and summaries on what a run or a session said."""

import importlib
from typing import Any

import numpy as np

from pfbr.errors import InputError
from pfbr.inference.display.columns import time_coordinate
from pfbr.inference.draws import Draws, systematic_indices
from pfbr.inference.frame_trace import StreamsTrace
from pfbr.inference.posterior import Posterior, Trace
from pfbr.inference.to_xarray import named_leaves


def to_arviz(result: Posterior | Trace, *, name: str = "x", stage: int = -1) -> Any:
    """The posterior of a `Posterior`, or of one `stage` of a `Trace` (`pfbr.run`), as ArviZ reads it.

    InferenceData, or a DataTree where arviz is 1.0 or later. One chain of n draws; many streams of a trace become
    chains, called by their ids where a frame gave them, with their `time` as a coordinate where times came. Unknowns
    and parameters have the names and shapes that the model gives them; a plain vector is called `name`. ArviZ's
    summaries know no weights, so that `posterior` holds equally weighted draws and `weighted_posterior` the particles
    with their `log_weight`. `sample_stats` belongs to `posterior`, draw by draw: log densities, and what the step said
    about itself.
    """
    arviz = _arviz()
    values, weights, density, info, chains, times = _parts(result, stage, name)
    kept = systematic_indices(weights)
    own: dict[str, np.ndarray] = {} if density is None else {"log_density": density}
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    groups: dict[str, dict[str, np.ndarray]] = {
        "posterior": {key: _picked(value, kept) for key, value in values.items()},
        "weighted_posterior": {**values, "log_weight": log_weights, **own},
        "sample_stats": {**{key: _picked(value, kept) for key, value in own.items()}, **info},
    }
    if int(arviz.__version__.split(".")[0]) < 1:  # by number: later ones still answer to the name InferenceData
        made = arviz.from_dict(posterior=groups["posterior"], sample_stats=groups["sample_stats"])
        weighted = arviz.convert_to_dataset(groups["weighted_posterior"])
        made.add_groups({"weighted_posterior": weighted}, warn_on_custom_groups=False)
        return made.map(lambda dataset: _labelled(dataset, chains, times))
    return arviz.from_dict(groups).map_over_datasets(lambda dataset: _labelled(dataset, chains, times))


def _labelled(dataset: Any, chains: list[Any] | None, times: np.ndarray | None) -> Any:
    """With the ids of streams and their times along the chains."""
    if "chain" not in dataset.dims:
        return dataset
    if chains is not None:
        dataset = dataset.assign_coords(chain=chains)
    return dataset if times is None else dataset.assign_coords(time=("chain", times))


def _parts(result: Posterior | Trace, stage: int, name: str):
    """(chain, draw, …) arrays, the ids of the chains, and their times."""
    chains = times = None
    if isinstance(result, StreamsTrace):
        pick: tuple = (result.stages(stage),)
        chains = result.streams
        times = None if result.times is None else time_coordinate(result.times)[pick]  # type: ignore[index]
    elif isinstance(result, Trace):
        if not -len(result) <= stage < len(result):
            raise InputError(f"`stage` must lie within the {len(result)} stages of this trace; got {stage}.")
        many = result.particles.ndim == 4
        pick = (slice(None), stage) if many else (None, stage)
        held = time_coordinate(result.times)
        if held is not None:
            times = np.broadcast_to(held, result.weights.shape[:-1])[pick]
    elif isinstance(result, Posterior):
        pick = (None,)
    else:
        raise InputError(f"expected a Posterior (Session.update) or a Trace (pfbr.run); got {type(result).__name__}.")

    weights = np.asarray(result.weights)[pick]
    values = _named(result._draws, name, pick)
    if result.parameters is not None:
        values |= _named(result.parameters, "parameters", pick)
    density = None if result.log_density is None else np.asarray(result.log_density)[pick]
    n = weights.shape[1]
    # what is known once per chain is repeated for its draws, as sample_stats wants it
    told = [(key, value) for key, value in result.info.items() if not isinstance(value, str)]
    repeated = {key: np.repeat(np.asarray(value)[pick][:, None], n, axis=1) for key, value in told}
    return values, weights, density, repeated, chains, times


def _named(draws: Draws, name: str, pick) -> dict[str, np.ndarray]:
    return {key: leaf[pick] for key, leaf in named_leaves(draws.values, name).items()}


def _picked(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, kept.reshape(*kept.shape, *(1,) * (values.ndim - 2)), axis=1)


def _arviz() -> Any:
    try:
        return importlib.import_module("arviz")
    except ImportError:
        raise InputError('the export needs ArviZ: install it with `pip install "pfbr[arviz]"`.') from None
