"""Posteriors for ArviZ: its plots and summaries on what a run or a session said."""

import importlib
from typing import Any

import numpy as np

from pfbr.errors import InputError
from pfbr.inference.method import Trace
from pfbr.inference.session import Posterior
from pfbr.particles.particles import Particles


def to_arviz(result: Posterior | Trace, *, name: str = "x", stage: int = -1) -> Any:
    """The posterior of a `Posterior`, or of one `stage` of a `Trace` (`pfbr.run`), as ArviZ reads it.

    InferenceData, or a DataTree where arviz is 1.0 or later. One chain of n draws; many streams of a trace become
    chains. ArviZ's summaries know no weights, so that `posterior` holds equally weighted draws (systematic resampling,
    the particles themselves where weights are equal) and `weighted_posterior` the particles with their `log_weight`.
    `sample_stats` belongs to `posterior`, draw by draw: log densities, and what the step said about itself.
    """
    arviz = _arviz()
    points, log_weights, density, info = _parts(result, stage)
    kept = _resampled(log_weights)
    own: dict[str, np.ndarray] = {} if density is None else {"log_density": density}
    groups: dict[str, dict[str, np.ndarray]] = {
        "posterior": {name: np.take_along_axis(points, kept[..., None], axis=1)},
        "weighted_posterior": {name: points, "log_weight": log_weights, **own},
        "sample_stats": {**{key: np.take_along_axis(value, kept, axis=1) for key, value in own.items()}, **info},
    }
    if int(arviz.__version__.split(".")[0]) < 1:  # by number: later ones still answer to the name InferenceData
        made = arviz.from_dict(posterior=groups["posterior"], sample_stats=groups["sample_stats"])
        weighted = arviz.convert_to_dataset(groups["weighted_posterior"])
        made.add_groups({"weighted_posterior": weighted}, warn_on_custom_groups=False)
        return made
    return arviz.from_dict(groups)


def _parts(result: Posterior | Trace, stage: int):
    """(chain, draw, …) arrays."""
    if isinstance(result, Posterior):
        held, info = Particles(result.particles, np.log(result.weights), result.log_density), result.info  # type: ignore[arg-type]
        many = False
    elif isinstance(result, Trace):
        many = result.particles.points.ndim == 4
        pick = (slice(None), stage) if many else (stage,)
        length = result.particles.points.shape[-3]
        if not -length <= stage < length:
            raise InputError(f"`stage` must lie within the {length} stages of this trace; got {stage}.")
        parts = (result.particles.points, result.particles.log_weights, result.particles.log_density)
        held = Particles(*(None if part is None else np.asarray(part)[pick] for part in parts))  # type: ignore[arg-type]
        info = {key: np.asarray(value)[pick] for key, value in result.info.items()}
    else:
        raise InputError(f"expected a Posterior (Session.update) or a Trace (pfbr.run); got {type(result).__name__}.")

    def chained(array):
        return np.asarray(array) if many else np.asarray(array)[None]

    points, log_weights = chained(held.points), chained(held.log_weights)
    density = None if held.log_density is None else chained(held.log_density)
    # what is known once per chain is repeated for its draws, as sample_stats wants it
    repeated = {key: np.repeat(chained(value)[:, None], points.shape[1], axis=1) for key, value in info.items()}
    return points, log_weights, density, repeated


def _resampled(log_weights: np.ndarray) -> np.ndarray:
    """Indices of equally weighted draws; every particle once where the weights are equal."""
    n = log_weights.shape[1]
    positions = (np.arange(n) + 0.5) / n
    below = np.cumsum(np.exp(log_weights), axis=1)
    found = [np.searchsorted(row / row[-1], positions) for row in below]
    return np.minimum(np.stack(found), n - 1)


def _arviz() -> Any:
    try:
        return importlib.import_module("arviz")
    except ImportError:
        raise InputError("the export needs ArviZ: install it with `pip install arviz`.") from None
