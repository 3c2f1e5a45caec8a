"""Models that cannot work, each with one fault; and unusual ones that can."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.models import GaussianMean, MiniBatch
from tests.attack.case import Case, accepted, refused

GROUP = "model faults"
ONE_X = np.zeros(2)


class Static(pfbr.Model):
    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x**2) - jnp.log(2 * jnp.pi)

    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum((observation - x) ** 2) - jnp.log(2 * jnp.pi)

    def sample_observation(self, key, x):
        return x + jax.random.normal(key, (2,))


class Mute(pfbr.Model):
    """Cannot draw observations: their shape is known with the first one."""

    dim: int = eqx.field(static=True, default=2)
    sample_prior = Static.sample_prior
    log_prior = Static.log_prior
    log_likelihood = Static.log_likelihood


class Moving(pfbr.StateSpaceModel):
    dim: int = eqx.field(static=True, default=2)
    sample_prior = Static.sample_prior
    log_prior = Static.log_prior
    log_likelihood = Static.log_likelihood
    sample_observation = Static.sample_observation

    def sample_transition(self, key, x):
        return 0.9 * x + jax.random.normal(key, (2,))

    def log_transition(self, x_next, x):
        return -0.5 * jnp.sum((x_next - 0.9 * x) ** 2) - jnp.log(2 * jnp.pi)


class Driven(Moving):
    """Needs inputs, and cannot draw them."""

    def log_likelihood(self, x, observation, *, inputs):
        return -0.5 * jnp.sum((observation - x - inputs) ** 2)


class Named(pfbr.Model):
    unknowns = {"beta": (2,), "sigma": pfbr.positive}  # noqa: RUF012 - as users write it

    def sample_prior(self, key):
        a, b = jax.random.split(key)
        return {"beta": jax.random.normal(a, (2,)), "sigma": jnp.exp(jax.random.normal(b))}

    def log_prior(self, x):
        return -0.5 * jnp.sum(x["beta"] ** 2) - 0.5 * jnp.log(x["sigma"]) ** 2 - jnp.log(x["sigma"])

    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum(((observation - x["beta"]) / x["sigma"]) ** 2) - 2 * jnp.log(x["sigma"])

    def sample_observation(self, key, x):
        return x["beta"] + x["sigma"] * jax.random.normal(key, (2,))


class Learning(Moving):
    """Parameters beside the state."""

    def sample_parameters(self, key):
        return {"rate": jax.random.uniform(key)}

    def log_parameters(self, params):
        return jnp.where((params["rate"] > 0) & (params["rate"] < 1), 0.0, -jnp.inf)

    def sample_transition(self, key, x, *, params):
        return params["rate"] * x + jax.random.normal(key, (2,))

    def log_transition(self, x_next, x, *, params):
        return -0.5 * jnp.sum((x_next - params["rate"] * x) ** 2)


def changed(base: type = Static, /, **parts: Any) -> Any:
    """An instance of a class with some of its methods, or fields, replaced."""
    return type("Changed", (base,), {"__module__": __name__, **parts})()


def used(model: Any, observation: Any = ONE_X, **given: Any) -> None:
    """What a user does with a model; what is refused is refused before anything is compiled."""
    pfbr.Session(model, num_particles=16).update(observation, **given)


def tried(name: str, build: Callable[[], Any], says: str, observation: Any = ONE_X, **given: Any) -> Case:
    return refused(GROUP, name, lambda: used(build(), observation, **given), says)


def passes(name: str, build: Callable[[], Any]) -> Case:
    return accepted(GROUP, name, lambda: pfbr.Session(build(), num_particles=16))


def _raise(error: BaseException) -> Any:
    raise error


class _Counter:
    value = 0

    def next(self) -> float:
        self.value += 1
        return float(self.value)


RNG, COUNT = np.random.default_rng(0), _Counter()
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
    "raises ValueError": (lambda x: _raise(ValueError("no such luck")), "ValueError.*no such luck"),
    "raises without words": (lambda x: _raise(RuntimeError()), "RuntimeError"),
    "raises many lines": (lambda x: _raise(ValueError("one\ntwo\nthree")), "ValueError"),
    "exits": (lambda x: _raise(SystemExit(3)), "SystemExit|exit"),
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


def _cases() -> list[Case]:
    found: list[Case] = [
        refused(GROUP, "the class, not an instance", lambda: used(Static), "an instance; got the class Static"),
        refused(GROUP, "a number for a model", lambda: used(3), "pfbr.Model.*got int"),
        refused(GROUP, "None for a model", lambda: used(None), "pfbr.Model.*NoneType"),
        refused(GROUP, "a function for a model", lambda: used(lambda x: x), "pfbr.Model.*function"),
        tried("no dim at all", lambda: type("Bare", (pfbr.Model,), _methods())(), "`dim`"),
        tried(
            "dim that raises",
            lambda: type(
                "Gone", (pfbr.Model,), {**_methods(), "dim": property(lambda s: _raise(ValueError("gone")))}
            )(),
            "dim.*gone",
        ),
        tried("dim of another size than the draws", lambda: Static(dim=5), r"sample_prior.*\(5,\).*\(2,\)"),
    ]
    found += [
        tried(f"dim is {n}", lambda d=d: Static(dim=d), r"dim.*(whole number|number of its unknowns)")
        for n, d in DIMS.items()
    ]
    found += _wrong_returns() + _raising() + _numbers() + _tracing() + _signatures() + _named() + _later()
    return found + _right()


def _methods() -> dict[str, Any]:
    return {name: getattr(Static, name) for name in ("sample_prior", "log_prior", "log_likelihood")}


def with_method(method: str, returns: Callable[[Any], Any]) -> Any:
    """A model with one method that returns this."""
    base = Moving if method.endswith("transition") else Static
    return changed(base, **{method: SHAPES[method](returns)})


def _wrong_returns() -> list[Case]:
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


def _raising() -> list[Case]:
    return [
        tried(f"{method} {name}", lambda m=method, f=fault: with_method(m, f), f"{method}.*({says})")
        for name, (fault, says) in FAULTS.items()
        for method in ("sample_prior", "log_prior", "log_likelihood", "sample_transition")
    ]


def _numbers() -> list[Case]:
    def at_some(value):
        return lambda s, x, *o: jnp.where(x[0] > 0, value, 0.0) + 0.0 * jnp.sum(x)

    infinite = lambda s, key: jax.random.normal(key, (2,)) / 0.0
    return [
        tried(
            "sample_prior draws NaN",
            lambda: changed(sample_prior=lambda s, key: jnp.full(2, jnp.nan)),
            "sample_prior.*(NaN|nan)",
        ),
        tried("sample_prior draws inf", lambda: changed(sample_prior=infinite), "sample_prior.*inf"),
        tried(
            "sample_prior draws NaN at times", lambda: changed(sample_prior=_nan_at_times), "sample_prior.*(NaN|nan)"
        ),
        tried("log_prior is NaN", lambda: changed(log_prior=lambda s, x: jnp.nan * x[0]), "log_prior.*NaN"),
        tried("log_prior is NaN at some", lambda: changed(log_prior=at_some(jnp.nan)), "log_prior.*NaN"),
        tried("log_prior is inf", lambda: changed(log_prior=at_some(jnp.inf)), r"log_prior.*\+inf"),
        tried("log_prior is -inf at its draws", lambda: changed(log_prior=at_some(-jnp.inf)), "log_prior.*−inf"),
        tried(
            "log_prior of a negative number",
            lambda: changed(log_prior=lambda s, x: jnp.sum(jnp.log(x))),
            "log_prior.*NaN",
        ),
        tried(
            "log_likelihood is NaN",
            lambda: changed(log_likelihood=lambda s, x, o: jnp.nan * x[0]),
            "log_likelihood.*NaN",
        ),
        tried("log_likelihood is NaN at some", lambda: changed(log_likelihood=at_some(jnp.nan)), "log_likelihood.*NaN"),
        tried(
            "log_likelihood is inf at some", lambda: changed(log_likelihood=at_some(jnp.inf)), r"log_likelihood.*\+inf"
        ),
        tried(
            "log_likelihood rules its own draws out",
            lambda: changed(log_likelihood=lambda s, x, o: x[0] * 0.0 - jnp.inf),
            "log_likelihood.*−inf",
        ),
        tried(
            "a component of log_likelihood is NaN",
            lambda: changed(log_likelihood=lambda s, x, o: jnp.log(o - x)),
            "log_likelihood.*NaN",
        ),
        tried(
            "sample_transition gives NaN",
            lambda: changed(Moving, sample_transition=lambda s, key, x: jnp.sqrt(x)),
            "sample_transition.*(NaN|nan)",
        ),
        tried(
            "sample_transition gives inf",
            lambda: changed(Moving, sample_transition=lambda s, key, x: x / 0.0),
            "sample_transition.*inf",
        ),
        tried(
            "log_transition is NaN",
            lambda: changed(Moving, log_transition=lambda s, y, x: jnp.nan * x[0]),
            "log_transition.*NaN",
        ),
        tried(
            "log_transition is inf",
            lambda: changed(Moving, log_transition=lambda s, y, x: jnp.inf + x[0]),
            r"log_transition.*\+inf",
        ),
        tried(
            "log_transition rules its draws out",
            lambda: changed(Moving, log_transition=lambda s, y, x: -jnp.inf + x[0]),
            "log_transition.*−inf",
        ),
        tried(
            "sample_observation gives NaN",
            lambda: changed(sample_observation=lambda s, key, x: x * jnp.nan),
            "sample_observation.*(NaN|nan)",
        ),
        tried(
            "log_parameters is NaN",
            lambda: changed(Learning, log_parameters=lambda s, params: jnp.nan * params["rate"]),
            "log_parameters.*NaN",
        ),
        tried(
            "sample_parameters draws NaN",
            lambda: changed(Learning, sample_parameters=lambda s, key: {"rate": jnp.nan * jax.random.uniform(key)}),
            "sample_parameters.*(NaN|nan)",
        ),
    ]


def _nan_at_times(self, key):
    x = jax.random.normal(key, (2,))
    return jnp.where(x[0] > 0, x, jnp.nan)


def _tracing() -> list[Case]:
    """Randomness without the key, NumPy and `if` on what JAX traces, indices outside."""
    x_of_five = lambda s, x, *o: -0.5 * x[5] ** 2
    return [
        tried(
            "sample_prior draws with NumPy",
            lambda: changed(sample_prior=lambda s, key: jnp.asarray(RNG.normal(size=2), jnp.float32)),
            "sample_prior.*key",
        ),
        tried(
            "sample_prior is a constant", lambda: changed(sample_prior=lambda s, key: jnp.ones(2)), "sample_prior.*key"
        ),
        tried(
            "sample_prior has a key of its own",
            lambda: changed(sample_prior=lambda s, key: jax.random.normal(jax.random.key(0), (2,))),
            "sample_prior.*key",
        ),
        tried(
            "sample_prior of a moving unknown draws with NumPy",
            lambda: changed(Moving, sample_prior=lambda s, key: jnp.asarray(RNG.normal(size=2), jnp.float32)),
            "sample_prior.*(key|twice)",
        ),
        tried(
            "sample_transition draws with NumPy",
            lambda: changed(Moving, sample_transition=lambda s, key, x: x + RNG.normal()),
            "sample_transition.*(key|twice)",
        ),
        tried(
            "sample_observation draws with NumPy",
            lambda: changed(sample_observation=lambda s, key, x: x + RNG.normal(size=2).astype(np.float32)),
            "sample_observation.*(key|twice)",
        ),
        tried(
            "log_likelihood counts its calls",
            lambda: changed(log_likelihood=lambda s, x, o: -COUNT.next() * jnp.sum((o - x) ** 2)),
            "log_likelihood.*twice",
        ),
        tried(
            "neither prior nor transition is random",
            lambda: changed(Moving, sample_prior=lambda s, key: jnp.ones(2), sample_transition=lambda s, key, x: x),
            "sample_prior.*key",
        ),
        tried(
            "log_likelihood uses NumPy",
            lambda: changed(log_likelihood=lambda s, x, o: np.sum(np.square(np.asarray(x)))),
            "log_likelihood.*jax.numpy",
        ),
        tried(
            "log_prior uses NumPy",
            lambda: changed(log_prior=lambda s, x: float(np.asarray(x).sum())),
            "log_prior.*jax.numpy",
        ),
        tried(
            "log_likelihood branches on x",
            lambda: changed(log_likelihood=lambda s, x, o: 0.0 if x[0] > 0 else -1.0),
            "log_likelihood.*jnp.where",
        ),
        tried(
            "log_prior branches on x",
            lambda: changed(log_prior=lambda s, x: jnp.sum(x) if x[1] > 0 else -1.0),
            "log_prior.*jnp.where",
        ),
        tried("log_likelihood loops on x", lambda: changed(log_likelihood=_loops), "log_likelihood.*jnp.where|lax"),
        tried(
            "sample_transition takes float(x)",
            lambda: changed(Moving, sample_transition=lambda s, key, x: x * float(x[0])),
            "sample_transition.*jnp",
        ),
        tried(
            "sample_prior takes int(key)",
            lambda: changed(sample_prior=lambda s, key: jnp.ones(2) * int(jax.random.randint(key, (), 0, 3))),
            "sample_prior",
        ),
        tried(
            "log_likelihood makes a shape of x",
            lambda: changed(log_likelihood=lambda s, x, o: jnp.sum(jnp.zeros(jnp.sum(x).astype(int)))),
            "log_likelihood",
        ),
        tried("log_likelihood writes into x", lambda: changed(log_likelihood=_writes), "log_likelihood"),
        tried("x[5] of two in log_prior", lambda: changed(log_prior=x_of_five), r"log_prior.*(5|index)"),
        tried("x[5] of two in log_likelihood", lambda: changed(log_likelihood=x_of_five), r"log_likelihood.*(5|index)"),
        tried(
            "x[-3] of two in log_likelihood",
            lambda: changed(log_likelihood=lambda s, x, o: -(x[-3] ** 2)),
            r"log_likelihood.*(3|index)",
        ),
        tried(
            "observation[2] of two",
            lambda: changed(log_likelihood=lambda s, x, o: -((o[2] - x[0]) ** 2)),
            r"log_likelihood.*(2|index)",
        ),
        tried(
            "x[[0, 7]] of two",
            lambda: changed(log_likelihood=lambda s, x, o: -jnp.sum(x[jnp.array([0, 7])] ** 2)),
            r"log_likelihood.*(7|index)",
        ),
        tried(
            "x[5] of two in sample_transition",
            lambda: changed(
                Moving, sample_transition=lambda s, key, x: x.at[0].set(x[5]) + jax.random.normal(key, (2,))
            ),
            r"sample_transition.*(5|index)",
        ),
        tried(
            "x.at[4].set of two in sample_transition",
            lambda: changed(
                Moving, sample_transition=lambda s, key, x: x.at[4].set(0.0) + jax.random.normal(key, (2,))
            ),
            r"sample_transition.*(4|index)",
        ),
        tried(
            "x[5] inside a loop",
            lambda: changed(log_likelihood=lambda s, x, o: jax.lax.fori_loop(0, 3, lambda i, t: t - x[5] ** 2, 0.0)),
            r"log_likelihood.*(5|index)",
        ),
        tried(
            "x[5] behind jit",
            lambda: changed(log_likelihood=lambda s, x, o: jax.jit(lambda y: -(y[5] ** 2))(x)),
            r"log_likelihood.*(5|index)",
        ),
    ]


def _loops(self, x, observation):
    total = x[0]
    while total > 0:
        total = total - 1.0
    return total


def _writes(self, x, observation):
    x[0] = 1.0
    return jnp.sum(x)


def _signatures() -> list[Case]:
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


def _named() -> list[Case]:
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


def _later() -> list[Case]:
    """What shows with the first observation, where the model cannot draw one."""
    likelihoods = {
        "returns None": (lambda s, x, o: None, "log_likelihood"),
        "returns a truth": (lambda s, x, o: x[0] > 0, "log_likelihood"),
        "returns a tuple": (lambda s, x, o: (x[0], x[1]), "log_likelihood"),
        "is complex": (lambda s, x, o: jnp.sum(x) * 1j, "log_likelihood"),
        "has another shape": (lambda s, x, o: jnp.zeros(7), r"log_likelihood.*\(2,\).*\(7,\)"),
        "raises": (lambda s, x, o: _raise(KeyError("speed")), "log_likelihood.*KeyError"),
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


def _right() -> list[Case]:
    """Unusual, and right: a check that refuses these would be worse than none."""

    def triangle(s, x, o):  # bounded noise: −inf far away
        return jnp.sum(jnp.where(jnp.abs(o - x) < 1, 0.0, -jnp.inf) - jnp.log(2.0))

    def counts(s, key, x):
        return jax.random.poisson(key, jnp.exp(x))

    def searches(s, x, o):  # an index that depends on x, clamped on purpose
        table = jnp.linspace(0.0, 1.0, 5)
        return -0.5 * jnp.sum((o - table[jnp.clip((x * 3).astype(int), 0, 4)]) ** 2)

    def loops(s, x, o):
        return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] - c[0] * x[0] ** 2), (0, 0.0))[1]

    known_start = {"sample_prior": lambda s, key: jnp.ones(2), "log_prior": lambda s, x: jnp.zeros(())}
    return [
        passes("right: static", Static),
        passes("right: moving", Moving),
        passes("right: without draws", Mute),
        passes("right: with inputs that it cannot draw", Driven),
        passes("right: named", Named),
        passes("right: with parameters", Learning),
        passes(
            "right: bounded noise",
            lambda: changed(
                log_likelihood=triangle,
                sample_observation=lambda s, key, x: x + jax.random.uniform(key, (2,), minval=-1.0),
            ),
        ),
        passes(
            "right: counts",
            lambda: changed(sample_observation=counts, log_likelihood=lambda s, x, o: jnp.sum(o * x - jnp.exp(x))),
        ),
        passes(
            "right: one number for each component", lambda: changed(log_likelihood=lambda s, x, o: -0.5 * (o - x) ** 2)
        ),
        passes("right: a known start", lambda: changed(Moving, **known_start)),
        passes(
            "right: dynamics without noise",
            lambda: changed(
                Moving, sample_transition=lambda s, key, x: 0.9 * x, log_transition=pfbr.StateSpaceModel.log_transition
            ),
        ),
        passes(
            "right: an index clamped on purpose",
            lambda: changed(
                log_likelihood=lambda s, x, o: -jnp.sum((o - jnp.take(x, jnp.array([0, 9]), mode="clip")) ** 2)
            ),
        ),
        passes("right: any arguments", lambda: changed(log_prior=lambda *args, **given: -0.5 * jnp.sum(args[1] ** 2))),
        passes("right: a clamped index", lambda: changed(log_likelihood=searches)),
        passes("right: a loop inside", lambda: changed(log_likelihood=loops)),
        passes(
            "right: half precision inside",
            lambda: changed(log_prior=lambda s, x: jnp.sum(x.astype(jnp.float16)).astype(jnp.float32) * 0),
        ),
        passes("right: a flat likelihood", lambda: changed(log_likelihood=lambda s, x, o: 0.0)),
        passes("right: a constant log_prior", lambda: changed(log_prior=lambda s, x: -1.5)),
        passes(
            "right: far draws",
            lambda: changed(
                sample_prior=lambda s, key: 1e6 * jax.random.normal(key, (2,)),
                log_prior=lambda s, x: -0.5 * jnp.sum((x / 1e6) ** 2),
            ),
        ),
        passes(
            "right: a uniform prior",
            lambda: changed(
                sample_prior=lambda s, key: jax.random.uniform(key, (2,)),
                log_prior=lambda s, x: jnp.where(jnp.all((x > 0) & (x < 1)), 0.0, -jnp.inf),
            ),
        ),
        passes(
            "right: NumPy constants",
            lambda: changed(log_likelihood=lambda s, x, o: -0.5 * jnp.sum((o - np.eye(2, dtype=np.float32) @ x) ** 2)),
        ),
        passes(
            "right: a default argument",
            lambda: changed(log_likelihood=lambda s, x, o, scale=2.0: -0.5 * jnp.sum(((o - x) / scale) ** 2)),
        ),
        passes(
            "right: observed is named",
            lambda: changed(
                log_likelihood=lambda s, x, o, *, observed: jnp.sum(jnp.where(observed, -0.5 * (o - x) ** 2, 0.0))
            ),
        ),
        passes("right: a mini-batch", lambda: MiniBatch(GaussianMean(2), 3)),
        passes("right: a last index", lambda: changed(log_likelihood=lambda s, x, o: -0.5 * (o[-1] - x[-2]) ** 2)),
        passes(
            "right: slices beyond the end",
            lambda: changed(log_likelihood=lambda s, x, o: -0.5 * jnp.sum((o[:9] - x[:7]) ** 2)),
        ),
    ]


CASES = _cases()
