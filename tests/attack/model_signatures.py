"""Models whose signatures, names or declared unknowns do not fit, at once or with the first observation."""

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.models import GaussianMean, MiniBatch
from tests.attack.case import Case
from tests.attack.model_kinds import Driven, Moving, Mute, Named, changed, fail, tried


def signatures() -> list[Case]:
    return [
        tried("sample_prior takes no key", lambda: changed(sample_prior=lambda s: jnp.zeros(2)), "sample_prior.*key"),
        tried(
            "log_likelihood takes x alone",
            lambda: changed(log_likelihood=lambda s, x: 0.0),
            "log_likelihood.*observation",
        ),
        tried("log_likelihood takes nothing", lambda: changed(log_likelihood=lambda s: 0.0), "log_likelihood"),
        tried("log_likelihood names wind", lambda: changed(log_likelihood=lambda s, x, o, *, wind: 0.0), "wind"),
        tried("log_likelihood names input", lambda: changed(log_likelihood=lambda s, x, o, *, input: 0.0), "inputs"),
        tried("log_prior names dt", lambda: changed(log_prior=lambda s, x, *, dt: 0.0), "dt"),
        tried(
            "sample_transition names observed",
            lambda: changed(Moving, sample_transition=lambda s, key, x, *, observed: x),
            "observed",
        ),
        tried(
            "log_likelihood names params that are not there",
            lambda: changed(log_likelihood=lambda s, x, o, *, params: x[0]),
            "params",
        ),
        tried("sample_prior is None", lambda: changed(sample_prior=None), "sample_prior"),
        tried("log_likelihood is a number", lambda: changed(log_likelihood=3.0), "log_likelihood"),
        tried("log_prior is a text", lambda: changed(log_prior="normal"), "log_prior"),
        tried("sample_observation is None", lambda: changed(sample_observation=None), "sample_observation"),
        tried(
            "sample_transition is a property",
            lambda: changed(Moving, sample_transition=property(lambda s: s)),
            "sample_transition",
        ),
        tried("log_likelihood is a coroutine", lambda: changed(log_likelihood=_later_on), "log_likelihood"),
        tried("log_likelihood is a generator", lambda: changed(log_likelihood=_bit_by_bit), "log_likelihood"),
        tried(
            "sample_parameters without log_parameters",
            lambda: changed(Moving, sample_parameters=lambda s, key: jax.random.normal(key)),
            "log_parameters",
        ),
        tried(
            "an inner model that names wind",
            lambda: MiniBatch(type("Inner", (GaussianMean,), {"log_likelihood": lambda s, x, o, *, wind: x})(2), 3),
            "Inner.*wind",
        ),
    ]


async def _later_on(self, x, observation):
    return 0.0


def _bit_by_bit(self, x, observation):
    yield 0.0


def named() -> list[Case]:
    def with_unknowns(unknowns: Any) -> Any:
        return changed(Named, unknowns=unknowns)

    draws = {
        "another name": lambda s, key: {"gamma": jnp.zeros(2), "sigma": jnp.ones(())},
        "a part missing": lambda s, key: {"beta": jax.random.normal(key, (2,))},
        "a vector": lambda s, key: jax.random.normal(key, (3,)),
        "None": lambda s, key: None,
        "another shape": lambda s, key: {"beta": jax.random.normal(key, (3,)), "sigma": jnp.ones(())},
        "outside its constraint": lambda s, key: {"beta": jax.random.normal(key, (2,)), "sigma": -jnp.ones(())},
        "on the edge": lambda s, key: {"beta": jax.random.normal(key, (2,)), "sigma": jnp.zeros(())},
    }
    bad = {"a list": [("a", 2)], "a text": "beta", "nothing": {}, "a name that is none": {3: (2,)}}
    bad |= {"an empty name": {"": (2,)}, "a fraction": {"a": 2.5}, "a text shape": {"a": "2"}, "None": {"a": None}}
    bad |= {"a negative shape": {"a": (-2,)}, "a truth": {"a": True}, "an empty shape": {"a": (0,)}}
    found = [
        tried(f"sample_prior draws {n}", lambda d=d: changed(Named, sample_prior=d), "sample_prior|sigma|beta")
        for n, d in draws.items()
    ]
    return found + [
        tried(f"unknowns is or has {n}", lambda u=u: with_unknowns(u), "unknown|shape|`a`|at least")
        for n, u in bad.items()
    ]


def later() -> list[Case]:
    """What shows with the first observation, where the model cannot draw one."""
    likelihoods = {
        "returns None": (lambda s, x, o: None, "log_likelihood"),
        "returns a truth": (lambda s, x, o: x[0] > 0, "log_likelihood"),
        "returns a tuple": (lambda s, x, o: (x[0], x[1]), "log_likelihood"),
        "is complex": (lambda s, x, o: jnp.sum(x) * 1j, "log_likelihood"),
        "has another shape": (lambda s, x, o: jnp.zeros(7), r"log_likelihood.*\(2,\).*\(7,\)"),
        "raises": (lambda s, x, o: fail(KeyError("speed")), "log_likelihood.*KeyError"),
        "branches": (lambda s, x, o: 0.0 if o[0] > 0 else x[0], "log_likelihood.*jnp.where"),
        "uses NumPy": (lambda s, x, o: np.sum(np.asarray(o)) + x[0], "log_likelihood.*jax.numpy"),
        "looks outside": (lambda s, x, o: -((o[2] - x[0]) ** 2), r"log_likelihood.*(2|index)"),
        "is NaN": (lambda s, x, o: jnp.log(-jnp.abs(x[0]) - 1.0), "log_likelihood.*NaN"),
        "is inf at some": (lambda s, x, o: jnp.where(x[0] > 0, jnp.inf, 0.0), r"log_likelihood.*\+inf"),
    }
    found = [
        tried(f"without draws, log_likelihood {n}", lambda f=f: changed(Mute, log_likelihood=f), says)
        for n, (f, says) in likelihoods.items()
    ]
    driven = lambda f: changed(Driven, log_likelihood=f)
    return [
        *found,
        tried(
            "with inputs, log_likelihood returns None",
            lambda: driven(lambda s, x, o, *, inputs: None),
            "log_likelihood",
            inputs=[1.0, 2.0],
        ),
        tried(
            "with inputs, it looks outside them",
            lambda: driven(lambda s, x, o, *, inputs: x[0] * inputs[4]),
            r"log_likelihood.*(4|index)",
            inputs=[1.0, 2.0],
        ),
        tried(
            "with inputs of another shape",
            lambda: driven(lambda s, x, o, *, inputs: jnp.ones(3) @ inputs + x[0]),
            "log_likelihood",
            inputs=[1.0, 2.0],
        ),
        tried(
            "with inputs by a name that is not there",
            lambda: driven(lambda s, x, o, *, inputs: inputs["wind"] + x[0]),
            "log_likelihood",
            inputs={"sun": 1.0},
        ),
    ]
