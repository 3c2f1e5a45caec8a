"""Is the posterior right, stage by stage, on streams that the model itself makes? Computes, and writes records."""

import contextlib
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pfbr.checks import check_memory, checked_amount, checked_count, checked_key, checked_num_particles
from pfbr.errors import FileError, InputError, ModelError
from pfbr.inference.method import Method
from pfbr.inference.operator import Operator
from pfbr.inference.registry import as_method
from pfbr.io.records import read_arrays, write_arrays
from pfbr.judging.calibration.order_gap import order_gap
from pfbr.judging.calibration.ranks import follow, simulated_streams
from pfbr.judging.calibration.uniformity import ecdf_band
from pfbr.judging.calibration.verdict import advice, sentence, summarise
from pfbr.models.base import Model, StateSpaceModel, has_observations
from pfbr.models.checks import checked_methods_of, checked_model
from pfbr.models.needs import all_needs

RECORD = "calibration"  # the stem of its two files
COMMAND = "pfbr calibrate SPEC --out DIR"
MIN_STREAMS = 20  # with fewer, hardly anything could be refused


@dataclasses.dataclass(frozen=True)
class CalibrationSettings:
    """How much is simulated; each field with its reason."""

    streams: int = 200  # a coverage of 0.95 is then known to 0.015
    length: int = 25  # as in the paper's linear system
    num_particles: int = 256  # as in the paper
    level: float = 0.05  # chance of refusing a perfect method, over all stages and quantities together


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Settings and verdict, and arrays: `ranks` (streams, stages, d + 1) in (0, 1), the last of them the likelihood's;
    `p_values` (stages, d + 1); `coverage` (3, stages, d); `band_low` and `band_high` (49,)."""

    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def trusted(self) -> bool:
        return not self.settings["failed_stages"]

    @property
    def verdict(self) -> str:
        return self.settings["verdict"]

    def save(self, directory: Path) -> None:
        write_arrays(directory, RECORD, self.settings, self.arrays)

    @classmethod
    def load(cls, directory: Path) -> "Calibration":
        settings, arrays = read_arrays(directory, RECORD, COMMAND)
        wanted = {"ranks", "p_values", "coverage", "band_low", "band_high"} - arrays.keys()
        if wanted := wanted | ({"verdict", "advice", "p_value", "failed_stages"} - settings.keys()):
            raise FileError(
                f"the records in {str(directory)!r} lack {', '.join(sorted(wanted))}: they are of another version, or "
                f"damaged. Make them again with `{COMMAND}`."
            )
        return cls(settings, arrays)


def calibrate(
    model: Model,
    *,
    method: str | Method = "auto",
    key: int | jax.Array = 0,
    settings: CalibrationSettings = CalibrationSettings(),
    progress: Callable[[int], None] = lambda done: None,
) -> Calibration:
    """Simulate streams, follow each with the method, and rank the truths at every stage.

    `progress` hears how many streams are done. Ctrl-C gives a verdict on what is there, as soon as that is 20 streams.
    """
    _check(settings)
    num_particles = checked_num_particles(settings.num_particles)
    data_key, run_key = jax.random.split(checked_key(key))
    model = checked_methods_of(checked_model(model))
    if not has_observations(model):
        raise ModelError(
            f"{type(model).__name__} has no `sample_observation(key, x)`: streams cannot be simulated. Add the method."
        )
    dim = int(model.dim)
    checked_num_particles(num_particles, dim=dim, sets=settings.length)
    for name in ("streams", "length"):
        size = 8 * settings.streams * settings.length * (dim + 1)
        check_memory(f"`{name}` = {getattr(settings, name)}", size, "Choose a smaller number.")
    chosen = as_method(method, model, rows=settings.length)
    drawn = simulated_streams(data_key, model, settings.streams, settings.length)
    parts, gaps = [], None
    with contextlib.suppress(KeyboardInterrupt):
        for part in follow(run_key, chosen, model, drawn, num_particles):
            parts.append(part)
            progress(sum(len(ranks) for ranks, _ in parts))
        # only where the posterior is that of a set of observations, in whatever order they came
        if not isinstance(model, StateSpaceModel) and not all_needs(model) & {"dt", "time"}:
            gaps = [float(gap) for gap in order_gap(run_key, chosen, model, drawn, num_particles)]
    if sum(len(ranks) for ranks, _ in parts) < min(MIN_STREAMS, settings.streams):
        raise KeyboardInterrupt
    ranks, whole = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    record = conclude(ranks, whole, settings, bare=_is_bare(chosen))
    found: dict[str, Any] = {"model": type(model).__name__, "method": _name(method)}
    if gaps is not None and np.all(np.isfinite(gaps)):
        found |= {"order_gap": gaps[0], "noise_gap": gaps[1]}
    return dataclasses.replace(record, settings=found | record.settings)


def _is_bare(method: Method) -> bool:
    """Whether it is an operator whose steps nothing corrects."""
    return isinstance(method, Operator) or getattr(method, "fallback", "") == "never"


def _name(method: str | Method) -> str:
    return os.fspath(method) if isinstance(method, str | os.PathLike) else type(method).__name__


def _check(settings: CalibrationSettings) -> None:
    checked_count("streams", settings.streams, least=MIN_STREAMS, why="since fewer ranks refuse nothing")
    checked_count("length", settings.length, least=1)
    if not 0 < checked_amount("level", settings.level) < 1:
        raise InputError(f"`level` is a probability between 0 and 1; got {settings.level}.")


def conclude(ranks: np.ndarray, whole: np.ndarray, settings: CalibrationSettings, *, bare: bool = False) -> Calibration:
    """The verdict on ranks (streams, stages, d + 1), with particles finite where `whole` (streams, stages).

    `bare`: the ranks are those of an operator whose steps nothing corrects.
    """
    streams = len(ranks)  # fewer than asked for after Ctrl-C
    ranks = np.where(whole[..., None], ranks, np.nan)
    found = summarise(ranks, whole, settings.level)
    low, high = ecdf_band(streams, settings.level / found.p_by_rank.size)
    described = dataclasses.asdict(settings) | {
        "streams": streams,
        "interrupted": streams < settings.streams,
        "p_value": found.p_value,
        "failed_stages": found.failed_stages,
        "failed": found.failed,
        "streams_not_finite": 0 if found.not_finite is None else found.not_finite[0],
    }
    described["verdict"] = sentence(found, streams)
    described["advice"] = advice(found, streams, settings.level, bare=bare)
    arrays = {"p_values": found.p_by_rank, "coverage": found.coverage, "band_low": low, "band_high": high}
    return Calibration(described, {"ranks": ranks, **arrays})
