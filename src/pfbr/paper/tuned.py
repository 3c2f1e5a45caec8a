"""Baselines tuned on streams of their own; what was chosen is in the records."""

import dataclasses
import math
from collections.abc import Iterable, Sequence

import jax
import numpy as np

from pfbr.baselines import tune
from pfbr.inference.method import Method
from pfbr.io.records import Measurement, Records
from pfbr.models.base import Model
from pfbr.paper.contract import Run
from pfbr.paper.streams import TUNING_SEED

TUNED, CHOSEN = "tuned candidate", "chosen "


def tuned(
    run: Run,
    records: Records,
    name: str,
    candidates: Sequence[Method],
    model: Model,
    *,
    num_particles: int,
    length: int,
    num_tasks: int,
) -> Method:
    """The best candidate on streams of its own; which one it was is in the records, and is not asked again."""
    known = remembered(records, name)
    if known is not None:
        return candidates[known]
    run.say(f"tuning {name} ({len(candidates)} candidates)")
    chosen = tune(
        jax.random.key(TUNING_SEED),
        candidates,
        model,
        num_particles=num_particles,
        length=length,
        num_tasks=num_tasks,
    )
    index = int(np.argmin(chosen.scores))
    lines = {**{CHOSEN + field: value for field, value in _choice(candidates, index).items()}, TUNED: float(index)}
    records.add(Measurement(name, metric, None, value, num_particles=num_particles) for metric, value in lines.items())
    run.tick()
    return chosen.method


def remembered(records: Records, name: str) -> int | None:
    """The candidate that was chosen before; None where tuning has not come to this method yet."""
    known = [m.value for m in records.measurements() if m.method == name and m.metric == TUNED]
    return int(known[-1]) if known else None


def choice_in_words(measurements: Iterable[Measurement], method: str) -> str:
    """The settings that tuning chose, in words."""
    found = {m.metric: m.value for m in measurements if m.method == method and m.metric.startswith(CHOSEN)}
    words = [f"{name.removeprefix(CHOSEN).replace('_', ' ')} {value:g}" for name, value in found.items()]
    return ", ".join(word.replace(" nan", " by its default rule") for word in words) or "nothing to choose"


def _choice(candidates: Sequence[Method], index: int) -> dict[str, float]:
    """The settings in which the chosen candidate differs from others, as numbers."""
    chosen = candidates[index]
    names = [f.name for f in dataclasses.fields(chosen) if len({str(getattr(c, f.name)) for c in candidates}) > 1]
    values = {name: getattr(chosen, name) for name in names}
    return {name: math.nan if value is None else float(value) for name, value in values.items()}
