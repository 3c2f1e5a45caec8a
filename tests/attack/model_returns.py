"""Models whose `dim` or whose methods give what is no number, no vector, or an error."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from tests.attack.case import Case, refused
from tests.attack.model_kinds import GROUP, Moving, Static, changed, fail, tried, used

DIMS = {"negative": -3, "zero": 0, "a text": "2", "None": None, "a truth": True, "a fraction": 2.5, "a list": [2]}
DIMS |= {"infinite": float("inf"), "an array": np.zeros(2), "a tuple": (2,), "a JAX number": jnp.asarray(2)}
# What a method returns, as a function of its first argument: a key for those that draw, x for densities.
NO_NUMBER: dict[str, Callable[[Any], Any]] = {
    "None": lambda x: None,
    "a text": lambda x: "0",
    "a whole number": lambda x: 0,
    "a truth": lambda x: True,
    "a whole array": lambda x: jnp.zeros((), jnp.int32),
    "truths": lambda x: x[0] > 0,
    "a complex number": lambda x: 1j * x[0],
    "a tuple": lambda x: (x[0], x[1]),
    "a dict": lambda x: {"value": x[0]},
    "a list": lambda x: [x[0]],
    "a matrix": lambda x: jnp.zeros((3, 3)),
    "an empty array": lambda x: x[:0],
}
NO_VECTOR: dict[str, Callable[[Any], Any]] = {
    "None": lambda key: None,
    "a tuple": lambda key: (jax.random.normal(key), jax.random.normal(key)),
    "a number": jax.random.normal,
    "one too many": lambda key: jax.random.normal(key, (3,)),
    "a matrix": lambda key: jax.random.normal(key, (1, 2)),
    "whole numbers": lambda key: jax.random.randint(key, (2,), 0, 9),
    "truths": lambda key: jax.random.bernoulli(key, 0.5, (2,)),
    "complex numbers": lambda key: jax.random.normal(key, (2,)) + 1j,
    "a dict": lambda key: {"x": jax.random.normal(key, (2,))},
}
FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "raises ValueError": (lambda x: fail(ValueError("no such luck")), "ValueError.*no such luck"),
    "raises without words": (lambda x: fail(RuntimeError()), "RuntimeError"),
    "raises many lines": (lambda x: fail(ValueError("one\ntwo\nthree")), "ValueError"),
    "exits": (lambda x: fail(SystemExit(3)), "SystemExit|exit"),
    "divides by zero": (lambda x: jnp.zeros(2) * (1 // 0), "ZeroDivisionError"),
    "names what is not there": (lambda x: undefined_name, "NameError.*undefined_name"),
    "recurses for ever": (lambda x: _for_ever(), "RecursionError"),
}
# How each method is called.
SHAPES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "sample_prior": lambda f: lambda self, key: f(key),
    "log_prior": lambda f: lambda self, x: f(x),
    "log_likelihood": lambda f: lambda self, x, observation: f(x),
    "sample_transition": lambda f: lambda self, key, x: f(key),
    "log_transition": lambda f: lambda self, x_next, x: f(x),
    "sample_observation": lambda f: lambda self, key, x: f(key),
}


def _for_ever() -> Any:
    return _for_ever()


def dims() -> list[Case]:
    found: list[Case] = [
        refused(GROUP, "the class, not an instance", lambda: used(Static), "an instance; got the class Static"),
        refused(GROUP, "a number for a model", lambda: used(3), "pfbr.Model.*got int"),
        refused(GROUP, "None for a model", lambda: used(None), "pfbr.Model.*NoneType"),
        refused(GROUP, "a function for a model", lambda: used(lambda x: x), "pfbr.Model.*function"),
        tried("no dim at all", lambda: type("Bare", (pfbr.Model,), _methods())(), "`dim`"),
        tried(
            "dim that raises",
            lambda: type("Gone", (pfbr.Model,), {**_methods(), "dim": property(lambda s: fail(ValueError("gone")))})(),
            "dim.*gone",
        ),
        tried("dim of another size than the draws", lambda: Static(dim=5), r"sample_prior.*\(5,\).*\(2,\)"),
    ]
    found += [
        tried(f"dim is {n}", lambda d=d: Static(dim=d), r"dim.*(whole number|number of its unknowns)")
        for n, d in DIMS.items()
    ]
    return found


def _methods() -> dict[str, Any]:
    return {name: getattr(Static, name) for name in ("sample_prior", "log_prior", "log_likelihood")}


def with_method(method: str, returns: Callable[[Any], Any]) -> Any:
    """A model with one method that returns this."""
    base = Moving if method.endswith("transition") else Static
    return changed(base, **{method: SHAPES[method](returns)})


def wrong_returns() -> list[Case]:
    densities = ("log_prior", "log_likelihood", "log_transition")
    found = [
        tried(f"{method} returns {name}", lambda m=method, r=returns: with_method(m, r), method)
        for name, returns in NO_NUMBER.items()
        for method in densities
    ]
    found += [
        tried(f"{method} returns {name}", lambda m=method, r=returns: with_method(m, r), method)
        for name, returns in NO_VECTOR.items()
        for method in ("sample_prior", "sample_transition")
    ]
    found += [
        tried(
            f"sample_observation returns {name}",
            lambda n=name: with_method("sample_observation", NO_VECTOR[n]),
            "sample_observation",
        )
        for name in ("None", "a tuple", "a dict", "complex numbers")
    ]
    wide = changed(log_likelihood=lambda s, x, o: jnp.zeros(3))
    return [
        *found,
        tried("log_likelihood for three of two components", lambda: wide, r"log_likelihood.*\(2,\).*\(3,\)"),
    ]


def raising() -> list[Case]:
    return [
        tried(f"{method} {name}", lambda m=method, f=fault: with_method(m, f), f"{method}.*({says})")
        for name, (fault, says) in FAULTS.items()
        for method in ("sample_prior", "log_prior", "log_likelihood", "sample_transition")
    ]
