"""Right models are ready, whatever they use; each of many broken ones is refused by the name of its method."""

from typing import ClassVar

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.cli.spec import BUILT_IN, resolve
from pfbr.errors import InputError
from pfbr.judging.model_check import FAULT, NOTE, CheckSettings, check_model, is_ready
from pfbr.models import GaussianMean, MiniBatch

SETTINGS = CheckSettings(draws=4096, cases=4)
logpdf = jax.scipy.stats.norm.logpdf


def told(model, settings=SETTINGS):
    return check_model(model, settings=settings)


class Quiet(pfbr.Model):
    """A prior, and a likelihood that nobody can draw from."""

    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return jax.random.normal(key, (self.dim,))

    def log_prior(self, x):
        return jnp.sum(logpdf(x))

    def log_likelihood(self, x, observation):
        return logpdf(observation, x)


class Plain(Quiet):
    """The same, with observations."""

    def sample_observation(self, key, x):
        return x + jax.random.normal(key, (self.dim,))


class Moving(pfbr.StateSpaceModel):
    """A random walk that is not observed."""

    dim: int = eqx.field(static=True, default=1)

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jnp.sum(logpdf(x))

    def sample_transition(self, key, x):
        return 0.9 * x + 0.5 * jax.random.normal(key, (1,))

    def log_transition(self, x_next, x):
        return jnp.sum(logpdf(x_next, 0.9 * x, 0.5))

    def log_likelihood(self, x, observation):
        return jnp.sum(logpdf(observation, x))


# right ones


@pytest.mark.parametrize(
    "spec", [name if name != "linear-dynamics" else "linear-dynamics:dim=4,seed=1" for name in BUILT_IN]
)
def test_built_in_models_are_ready(spec):
    findings = told(resolve(spec))
    assert is_ready(findings), [f for f in findings if f.level == FAULT]
    assert {"sample_prior", "log_prior", "log_likelihood", "sample_observation"} <= {f.method for f in findings}


@pytest.mark.slow
def test_a_mini_batch_is_ready():
    assert is_ready(told(MiniBatch(GaussianMean(2), 3)))


class Everything(pfbr.StateSpaceModel):
    """Time, inputs, parameters, a mask."""

    dim: int = eqx.field(static=True, default=2)

    def sample_parameters(self, key):
        return {"drift": jax.random.normal(key), "noise": jax.random.exponential(jax.random.fold_in(key, 1), (1,))}

    def log_parameters(self, params):
        return logpdf(params["drift"]) - jnp.sum(params["noise"])

    def sample_prior(self, key, *, params):
        return params["drift"] + jax.random.normal(key, (2,))

    def log_prior(self, x, *, params):
        return jnp.sum(logpdf(x, params["drift"]))

    def sample_transition(self, key, x, *, dt, time, inputs, params):
        mean = x + dt * (params["drift"] + inputs["u"] + jnp.sin(time))
        return mean + jnp.sqrt(dt) * jax.random.normal(key, (2,))

    def log_transition(self, x_next, x, *, dt, time, inputs, params):
        mean = x + dt * (params["drift"] + inputs["u"] + jnp.sin(time))
        return jnp.sum(logpdf(x_next, mean, jnp.sqrt(dt)))

    def log_likelihood(self, x, observation, *, observed, params):
        return jnp.sum(jnp.where(observed, logpdf(observation, x, 0.1 + params["noise"]), 0.0))

    def sample_observation(self, key, x, *, params):
        return x + (0.1 + params["noise"]) * jax.random.normal(key, (2,))

    def sample_inputs(self, key):
        return {"u": jax.random.normal(key, (2,))}

    def sample_dt(self, key):
        return jax.random.exponential(key)


def test_a_model_that_needs_everything_is_ready():
    findings = told(Everything())
    assert is_ready(findings), [f for f in findings if f.level == FAULT]
    asked = {f.method for f in findings}
    assert {"sample_parameters", "sample_transition", "sample_observation"} <= asked


class Constrained(pfbr.Model):
    """All constraints, some of them with bounded or heavy-tailed laws."""

    unknowns: ClassVar = {
        "beta": (2,),
        "sigma": pfbr.positive,
        "share": pfbr.interval(0.0, 2.0),
        "parts": pfbr.simplex(3),
        "cuts": pfbr.ordered(2),
        "matrix": pfbr.correlation(2),
    }

    def sample_prior(self, key):
        keys = jax.random.split(key, 6)
        corner = jnp.tanh(jax.random.normal(keys[5]))
        normals, parts = jax.random.normal(keys[0], (4, 2)), jax.random.exponential(keys[3], (3,))
        return {
            "beta": normals[0] / jnp.sqrt(jnp.mean(normals[1:] ** 2, axis=0)),  # Student's t
            "sigma": jnp.exp(jax.random.normal(keys[1])),
            "share": jax.random.uniform(keys[2], minval=0, maxval=2),
            "parts": parts / jnp.sum(parts),
            "cuts": jnp.sort(jax.random.normal(keys[4], (2,))),
            "matrix": jnp.array([[1.0, corner], [corner, 1.0]]),
        }

    def log_prior(self, x):
        corner = x["matrix"][1, 0]
        return (
            jnp.sum(jax.scipy.stats.t.logpdf(x["beta"], 3.0))
            + logpdf(jnp.log(x["sigma"])) - jnp.log(x["sigma"])
            - jnp.log(2.0)
            + jnp.log(2.0)
            + jnp.log(2.0) + jnp.sum(logpdf(x["cuts"]))
            + logpdf(jnp.arctanh(corner)) - jnp.log1p(-(corner**2))
        )  # fmt: skip

    def log_likelihood(self, x, observation):
        return logpdf(observation, x["beta"], x["sigma"])

    def sample_observation(self, key, x):
        return x["beta"] + x["sigma"] * jax.random.normal(key, (2,))


class Shares(pfbr.Model):
    """Two of them, and nothing to draw observations with."""

    unknowns: ClassVar = {"sigma": pfbr.positive, "parts": pfbr.simplex(3)}

    def sample_prior(self, key):
        drawn = jax.random.exponential(key, (4,))
        return {"sigma": drawn[0], "parts": drawn[1:] / jnp.sum(drawn[1:])}

    def log_prior(self, x):
        return -x["sigma"] + jnp.log(2.0)

    def log_likelihood(self, x, observation):
        return logpdf(observation, x["parts"], x["sigma"])


@pytest.mark.parametrize(
    ("model", "constrained"), [(Shares(), 2), pytest.param(Constrained(), 5, marks=pytest.mark.slow)]
)
def test_named_and_constrained_unknowns_are_ready(model, constrained):
    findings = told(model)
    assert is_ready(findings), [f for f in findings if f.level == FAULT]
    assert len([f for f in findings if "within its constraint" in f.question]) == constrained


def test_what_cannot_be_looked_at_is_noted():
    class Driven(Plain):
        def log_likelihood(self, x, observation, *, inputs):
            return logpdf(observation, inputs * x)

    notes = {f.method: f.found for f in told(Driven()) if f.level == NOTE}
    assert "missing" in notes["sample_inputs"]
    findings = told(Quiet())
    assert is_ready(findings)
    assert [f.method for f in findings if f.level == NOTE] == ["sample_observation"]


def test_deterministic_dynamics_are_noted_not_refused():
    class Orbit(Moving):
        def sample_transition(self, key, x):
            return 1.01 * x

        log_transition = pfbr.StateSpaceModel.log_transition

    findings = told(Orbit())
    assert is_ready(findings)
    assert "deterministic" in next(f.found for f in findings if f.level == NOTE and f.method == "sample_transition")


# broken ones


class IgnoresItsKey(Quiet):
    def sample_prior(self, key):
        return jax.random.normal(jax.random.key(0), (2,))


class DrawsFromNumPy(Quiet):
    def sample_prior(self, key):
        return jnp.asarray(np.random.default_rng(0).normal(size=2), jnp.float32)


class WiderThanItSays(Quiet):
    def sample_prior(self, key):
        return jax.random.normal(key, (2,)) * jnp.array([1.0, 1.2])


class NotNormalised(Quiet):
    def log_prior(self, x):
        return -0.5 * x @ x


class OneForEachCoordinate(Quiet):
    def log_prior(self, x):
        return logpdf(x)


class NotANumber(Quiet):
    def log_prior(self, x):
        return jnp.sum(logpdf(x)) + 0 * jnp.sum(jnp.log(x))


class OutsideItsSupport(Quiet):
    def sample_prior(self, key):
        return jax.random.uniform(key, (2,), maxval=1.1)

    def log_prior(self, x):
        return jnp.where(jnp.all((x >= 0) & (x <= 1)), 0.0, -jnp.inf)


class WholeNumbers(Quiet):
    def sample_prior(self, key):
        return jax.random.randint(key, (2,), 0, 5)


class WrongShape(Quiet):
    def sample_prior(self, key):
        return jax.random.normal(key, (3,))


class NotFinite(Quiet):
    def sample_prior(self, key):
        return jnp.log(jax.random.normal(key, (2,)))


class AsksWhetherInPython(Quiet):
    def log_prior(self, x):
        return jnp.sum(logpdf(x)) if x[0] > 0 else -jnp.inf


class CallsNumPy(Quiet):
    def log_prior(self, x):
        return np.sum(np.asarray(x))


class NamesTheUnknown(Quiet):
    def log_likelihood(self, x, observation, *, input):
        return logpdf(observation, x)


class Misspelt(Quiet):
    def sample_observations(self, key, x):
        return x


class WrongFromNormal(Quiet):
    def prior_from_normal(self, z):
        return 1.3 * z


class NoGradient(Quiet):
    def log_prior(self, x):
        return jnp.sum(logpdf(jax.lax.stop_gradient(x)))


class NaNGradient(Quiet):
    def log_prior(self, x):
        return jnp.sum(logpdf(x)) + 0.0 * jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0))


class NegativeScale(pfbr.Model):
    unknowns: ClassVar = {"mu": (), "sigma": pfbr.positive}

    def sample_prior(self, key):
        return {"mu": jax.random.normal(key), "sigma": jax.random.normal(jax.random.fold_in(key, 1))}

    def log_prior(self, x):
        return logpdf(x["mu"]) + logpdf(x["sigma"])

    def log_likelihood(self, x, observation):
        return logpdf(observation, x["mu"], x["sigma"])


class ForgetsAName(NegativeScale):
    def sample_prior(self, key):
        return {"mu": jax.random.normal(key)}


class VarianceForStd(Plain):
    def log_likelihood(self, x, observation):
        return logpdf(observation, x, 1.44)


class ForgetsTheScaleOfTheNoise(Plain):
    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum(((observation - x) / jnp.exp(x)) ** 2) - jnp.log(2 * jnp.pi)

    def sample_observation(self, key, x):
        return x + jnp.exp(x) * jax.random.normal(key, (2,))


class OneForSomethingElse(Plain):
    def log_likelihood(self, x, observation):
        return logpdf(observation, x)[:1]


class ObservationIgnoresItsKey(Plain):
    def sample_observation(self, key, x):
        return x


class IgnoresTheMask(Plain):
    def log_likelihood(self, x, observation, *, observed):
        return jnp.sum(logpdf(observation, x))


class ComponentsMixed(Plain):
    def log_likelihood(self, x, observation):
        return logpdf(observation - observation[::-1], x - x[::-1]) * 0 + logpdf(observation[::-1], x[::-1])


class WrongSign(Moving):
    def log_transition(self, x_next, x):
        return jnp.sum(logpdf(x_next, -0.9 * x, 0.5))


class StillWithADensity(Moving):
    def sample_transition(self, key, x):
        return 0.9 * x


class WrongMoments(Moving):
    def transition_mean_and_std(self, x):
        return 0.9 * x, jnp.full(1, 0.25)


class BadTime(Moving):
    def sample_dt(self, key):
        return -jax.random.exponential(key)


class WrongMatrices(GaussianMean):
    def linear_gaussian(self):
        return super().linear_gaussian()._replace(R=jnp.eye(1) * 2)


@pytest.mark.parametrize(
    ("model", "method", "words"),
    [
        (IgnoresItsKey(), "sample_prior", "keys gave one and the same draw"),
        pytest.param(DrawsFromNumPy(), "sample_prior", "keys gave one and the same draw", marks=pytest.mark.slow),
        (WiderThanItSays(), "sample_prior", "x[1]: the draws have mean"),
        (NotNormalised(), "log_prior", "to 6.2"),
        (OneForEachCoordinate(), "log_prior", "shape (2,)"),
        (NotANumber(), "log_prior", "NaN at 75 %"),
        (OutsideItsSupport(), "log_prior", "−inf at 17 %"),
        (WholeNumbers(), "sample_prior", "int32"),
        (WrongShape(), "sample_prior", "shape (3,)"),
        (NotFinite(), "sample_prior", "NaN or inf in 75 %"),
        (AsksWhetherInPython(), "log_prior", "TracerBoolConversionError"),
        (CallsNumPy(), "log_prior", "TracerArrayConversionError"),
        (NamesTheUnknown(), "NamesTheUnknown", "Did you mean `inputs`?"),
        (Misspelt(), "sample_observations", "never called"),
        (WrongFromNormal(), "prior_from_normal", "the draws have mean"),
        (NoGradient(), "log_prior", "jax.grad says 0"),
        (NaNGradient(), "log_prior", "NaN or inf at"),
        (NegativeScale(), "sample_prior", "% of the draws are not positive"),
        (ForgetsAName(), "sample_prior", "the keys mu"),
        (VarianceForStd(), "sample_observation", "std 1.4"),
        (ForgetsTheScaleOfTheNoise(), "log_likelihood", "for one x and"),
        (OneForSomethingElse(), "log_likelihood", "shape (1,) for an observation of shape (2,)"),
        (ObservationIgnoresItsKey(), "sample_observation", "keys gave one and the same draw"),
        (IgnoresTheMask(), "log_likelihood", "changes with components that were not seen"),
        pytest.param(
            ComponentsMixed(), "log_likelihood", "changes with components that were not seen", marks=pytest.mark.slow
        ),
        (WrongSign(), "sample_transition", "the draws have mean"),
        (StillWithADensity(), "sample_transition", "keys gave one and the same draw"),
        pytest.param(WrongMoments(), "transition_mean_and_std", "instead of", marks=pytest.mark.slow),
        (BadTime(), "sample_dt", "not one number of at least 0"),
        (WrongMatrices(1), "linear_gaussian", "instead of"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, pfbr.Model) else "",
)
def test_a_broken_model_is_refused_by_the_name_of_its_method(model, method, words):
    faults = [f for f in told(model) if f.level == FAULT]
    assert {f.method for f in faults} == {method}, faults
    assert any(words in f.found + f.advice for f in faults), faults
    assert all(f.advice for f in faults)


def test_too_few_draws_are_refused():
    with pytest.raises(InputError, match="`draws` must be at least"):
        check_model(Quiet(), settings=CheckSettings(draws=10))


def test_one_seed_gives_the_same_findings():
    assert told(Quiet()) == told(Quiet())
