"""Methods by name, wherever one is asked for; and the one place where it is decided what a method is wrapped in.

The rivals are looked up here lazily, by name alone: the one place where a room knows of a room below it.
"""

import importlib
import math
import os
from typing import Any

import jax

from pfbr.checks import check_memory, checked_count, shortened
from pfbr.errors import InputError
from pfbr.inference.method import Method
from pfbr.models.base import Model, has_parameters
from pfbr.models.conditions import observation_shape

OWN = ("auto", "gaussian", "general", "collocation")
HELP = (
    "`auto` (the default); `gaussian`, the bare affine flow; `general`, the learned map that serves every model; "
    "`collocation`, a training-free flow for curved posteriors in few dimensions; a trained operator's file or name "
    "(`static-2d`, `mixture`); or a rival's name."
)


def as_method(method: str | Method, model: Model, *, history: int = 4096, rows: int | None = None) -> Method:
    """The method of a name, a file or an object, ready for this model; an error says why it cannot do it.

    `history` is how many rows a method that looks back may keep, 0 for none; no more than `rows`, where their number is
    known. A trained operator is a candidate flow: its steps are corrected by importance weights.
    """
    history = checked_count("history", history, least=0, why="a number of rows to keep")
    kept = history if rows is None else min(history, rows)
    row = 4 * (1 + math.prod(observation_shape(model) or ()))  # bytes
    check_memory(f"`history` = {history}", kept * row, "Keep fewer rows.")
    chosen = _named(method, model, kept) if isinstance(method, str | os.PathLike) else method
    from pfbr.flow.velocities.affine import AffineVelocity
    from pfbr.inference.corrected import Corrected
    from pfbr.inference.nested.method import Nested
    from pfbr.inference.operator import Operator

    if isinstance(chosen, Operator) and not isinstance(chosen.velocity, AffineVelocity):
        chosen = Corrected(chosen, history=kept)
    if has_parameters(model) and not isinstance(chosen, Nested):
        raise InputError(
            f"{type(model).__name__} has parameters beside its state, which {_name(method)} cannot learn: use "
            'method="auto".'
        )
    if not isinstance(chosen, Method):
        raise InputError(
            f"`method` must be a name ({', '.join(OWN)}, a file, a rival), an operator (pfbr.load, pfbr.fit) or a "
            f"rival; got {type(method).__name__}."
        )
    reason = chosen.unsupported(model)
    if reason is not None:
        raise InputError(f"{_name(method)} cannot do {type(model).__name__}: {reason}")
    return chosen


def _named(name: str | os.PathLike, model: Model, history: int) -> Any:
    from pfbr.inference.nested.method import Nested
    from pfbr.inference.operator import gaussian_operator

    name = os.fspath(name)
    if not isinstance(name, str) or "\0" in name:
        raise InputError(f"`method` must be a name or a path; got {shortened(name)}.")
    if name == "auto" and has_parameters(model):
        return Nested(history=history)
    if name == "auto":
        from pfbr.inference.adaptive.method import Adaptive

        return Adaptive(history=history)
    if name == "gaussian":
        return gaussian_operator()
    if name == "general":
        from pfbr.inference.architectures import build, choose

        return build(jax.random.key(0), choose("general", model))
    if name == "collocation":
        from pfbr.inference.collocation.method import collocation_operator

        return collocation_operator()
    from pfbr.inference.pretrained import NAMES, pretrained

    if name in NAMES:
        return pretrained(name)
    baselines = importlib.import_module("pfbr.baselines")  # lazily: nothing above imports a rival
    if name in baselines.REGISTRY:
        return baselines.make(name, model, history=history)
    if name.endswith(".pfbr") or os.path.exists(name):
        from pfbr.inference.operator_file import load

        return load(name)
    known = ", ".join((*OWN, *NAMES, *baselines.REGISTRY))
    raise InputError(f"there is no method {shortened(name)}; there are {known}, and operators in .pfbr files.")


def method_class(name: Any) -> type[Method] | None:
    """The class of this name, of ours or of a rival's: for files that describe a method. None: there is none."""
    from pfbr.inference.adaptive.method import Adaptive
    from pfbr.inference.collocation.method import CollocationOperator
    from pfbr.inference.corrected import Corrected
    from pfbr.inference.nested.method import Nested
    from pfbr.inference.operator import Operator

    own = {cls.__name__: cls for cls in (Adaptive, CollocationOperator, Corrected, Nested, Operator)}
    if name in own:
        return own[name]
    found = getattr(importlib.import_module("pfbr.baselines"), str(name), None)
    return found if isinstance(found, type) and issubclass(found, Method) else None


def _name(method: Any) -> str:
    return repr(os.fspath(method)) if isinstance(method, str | os.PathLike) else type(method).__name__
