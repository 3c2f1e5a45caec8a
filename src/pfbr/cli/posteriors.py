"""Posteriors as named arrays for a file, as JSON for a live stream, and in a line of words."""

from typing import Any

import jax
import numpy as np

from pfbr.inference.info import Move
from pfbr.inference.posterior import Posterior, Trace
from pfbr.io.files import strict


def arrays_of(held: Posterior | Trace) -> dict[str, np.ndarray]:
    """What is kept of a posterior, or of a recorded stream; leaves of a tree have dots in their names."""
    arrays: dict[str, Any] = {"particles": held.particles, "weights": held.weights}
    if held.log_density is not None:
        arrays["log_density"] = held.log_density
    arrays |= named("mean", held.mean()) | named("std", held.std())
    if isinstance(held.mean(), dict):
        arrays |= named("samples", held.samples)
    else:
        arrays["covariance"] = held.cov()
    if held.parameters is not None:
        beside = held.parameters
        for what, tree in {"samples": beside.samples, "mean": beside.mean(), "std": beside.std()}.items():
            arrays |= named(f"parameters.{what}", tree)
    for name, value in held.info.items():  # a method may call its own details as it likes
        arrays[f"info.{name}" if name in arrays else name] = _move_names(value) if name == "move" else value
    return {name: np.asarray(value) for name, value in arrays.items()}


def answer_of(posterior: Posterior, stage: int) -> dict[str, Any]:
    """One posterior as JSON: `mean` and `std` are lists, or dicts by the names of the unknowns."""
    answer: dict[str, Any] = {"stage": stage, "mean": posterior.mean(), "std": posterior.std()}
    if not isinstance(answer["mean"], dict):
        answer["covariance"] = posterior.cov()
    if posterior.parameters is not None:
        answer["parameters"] = {"mean": posterior.parameters.mean(), "std": posterior.parameters.std()}
    answer["info"] = dict(posterior.info.items())
    return strict(_plain(answer))


def named(name: str, tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree: `mean` where it is one, `mean.sigma` and the like where it has parts."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {".".join([name, *map(_key, path)]): np.asarray(leaf) for path, leaf in leaves}


def _plain(value: Any) -> Any:
    """Lists for arrays, in the order in which things were said."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic | jax.Array) else value


def in_words(trace: Trace, particles: int) -> str:
    """How a whole file went, in a line."""
    info = trace.info
    words = []
    if info.log_evidence is not None:
        words.append(f"log evidence {_span(info.log_evidence[..., -1])}")
    if info.flagged is not None:
        flagged = np.asarray(info.flagged) > 0
        first = f" (first: {_first(flagged)})" if flagged.any() else ""
        words.append(f"{flagged.sum()} of {flagged.size} steps flagged{first}")
    if info.ess is not None:
        words.append(f"least ESS {np.min(info.ess):.0f} of {particles}")
    if "ood" in info.details:
        words.append(f"largest out-of-distribution score {np.max(info.details['ood']):.1f}")
    return ", ".join(words) + "." if words else f"{len(trace)} observations."


def _move_names(value: Any) -> Any:
    """Words for the numbers of a recorded stream; a single posterior has the word already."""
    if isinstance(value, str):
        return value
    words = {move.value: move.name.lower().replace("_", " ") for move in Move}
    return np.vectorize(words.__getitem__, otypes=[str])(value)


def _key(part: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)


def _span(values: np.ndarray) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.2f}" if values.ndim == 0 else f"{low:.2f} to {high:.2f} over {values.size} streams"


def _first(flags: np.ndarray) -> str:
    *stream, stage = (int(i) for i in np.argwhere(flags)[0])
    return f"observation {stage + 1}" + (f" of stream {stream[0] + 1}" if stream else "")
