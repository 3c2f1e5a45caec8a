"""Where training begins: at the operator that was asked for, or at the best one that is there before any training."""

import math
from collections.abc import Callable
from typing import Any

from pfbr.errors import InputError
from pfbr.inference.architectures import Architecture, architecture_of, build, choose
from pfbr.inference.operator import Operator
from pfbr.inference.pretrained import pretrained
from pfbr.models.base import Model, StateSpaceModel
from pfbr.typing import Key

Start = tuple[Architecture, Operator]


def starting_operator(
    key: Key,
    operator: str | Operator,
    model: Model,
    architecture: dict[str, Any],
    score: Callable[[Operator], float],
) -> Start:
    """`score` of an operator on the held-out tasks, lower is better: asked for "auto" alone, which takes the better of
    the training-free flow with an untrained correction and what the package has learned for models like this one.
    Settings of an architecture are those of the former."""
    if isinstance(operator, Operator):
        reason = operator.unsupported(model)
        if reason is not None:
            raise InputError(reason)
        return architecture_of(operator), operator
    design = choose(operator, model, **architecture)
    fresh = design, build(key, design)
    if operator != "auto" or architecture:
        return fresh
    return min((fresh, _learned(key, model)), key=lambda start: _finite(score(start[1])))


def _learned(key: Key, model: Model) -> Start:
    """Two static unknowns have an operator of their own, which has more to learn with than the map for every model."""
    if int(model.dim) == 2 and not isinstance(model, StateSpaceModel):
        operator = pretrained("static-2d")
        return architecture_of(operator), operator
    design = choose("general", model)
    return design, build(key, design)


def _finite(score: float) -> float:
    return score if math.isfinite(score) else math.inf
