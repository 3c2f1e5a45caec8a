"""Methods whose signature names what a NumPyro function names, and a class of models made of them."""

import inspect
import types
from collections.abc import Callable
from typing import Any

from pfbr.errors import ModelError
from pfbr.models.needs import GIVEN

OBSERVATION = "y"


def naming(method: Callable, words: tuple[str, ...]) -> Callable:
    """The method with these keywords in place of its `**given`."""

    def named(self, *args, **given):
        return method(self, *args, **given)

    own = [p for p in inspect.signature(method).parameters.values() if p.kind is not p.VAR_KEYWORD]
    asked = [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY) for word in words]
    named.__signature__ = inspect.Signature([*own, *asked])  # type: ignore[attr-defined]
    named.__name__, named.__doc__ = method.__name__, method.__doc__
    return named


def made_class(name: str, base: type, unknowns: dict[str, Any], methods: dict[str, Callable]) -> type:
    """A class of models with these unknowns and methods."""
    body = {"unknowns": unknowns, "__doc__": f"The NumPyro function {name}.", "__module__": base.__module__, **methods}
    return types.new_class(name, (base,), {}, lambda namespace: namespace.update(body))


def parameters_of(function: Any, what: str) -> list[inspect.Parameter]:
    """Of a NumPyro function; what takes any argument cannot be asked."""
    if not callable(function):
        raise ModelError(f"{what} must be a NumPyro function; got {type(function).__name__}.")
    found = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found):
        raise ModelError(f"{what} must name its arguments; `*args` and `**kwargs` do not say what to give it.")
    return found


def observation_among(names: list[str], what: str) -> str:
    """Which argument is the observation: the one called `y`, else the last."""
    if not names:
        raise ModelError(f"{what} takes no argument for the observation: write `def model(inputs, y=None)`.")
    return OBSERVATION if OBSERVATION in names else names[-1]


def words_among(parameters: list[inspect.Parameter], what: str) -> tuple[str, ...]:
    """What a function asks for beyond its first arguments, out of `dt`, `time`, `inputs` and `params`."""
    known = [word for word in GIVEN if word != "observed"]
    for parameter in parameters:
        if parameter.name not in known and parameter.default is parameter.empty:
            raise ModelError(
                f"{what} names `{parameter.name}`, and nobody can give it that: it can name {', '.join(known)}. Or "
                f"give `{parameter.name}` a default."
            )
    return tuple(parameter.name for parameter in parameters if parameter.name in known)
