"""Somebody else's posterior as a prior, against the posterior of one stream that nobody cut."""

from typing import ClassVar

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean
from tests.inference.test_forecast import SYSTEM, Level

RNG = np.random.default_rng(1)
STREAM = RNG.normal(size=(8, 2)).astype(np.float32)
MODEL = GaussianMean(2, observation_std=1.0)


def draws_of(model, stream, num=4000) -> np.ndarray:
    truth = kalman(model, jnp.asarray(stream))
    return RNG.multivariate_normal(np.asarray(truth.mean[-1]), np.asarray(truth.cov[-1]), size=num)


@pytest.mark.parametrize(("model", "method"), [(MODEL, "auto"), (SYSTEM, "exact")], ids=["static", "dynamics"])
def test_a_stream_that_is_cut_goes_on(model, method):
    """Four rows there, four rows here: 4000 draws cost 0.016 standard deviations, z = 4."""
    session = pfbr.Session.from_draws(model, draws_of(model, STREAM[:4]), method=method)
    assert session.prior_fit.kind == "gaussian"
    assert not session.prior_fit.flagged
    for y in STREAM[4:]:
        posterior = session.update(y)
    truth = kalman(model, jnp.asarray(STREAM))
    found = posterior.mean() if method == "auto" else session._state.own.memory.mean
    spread = np.sqrt(np.diag(truth.cov[-1]))
    np.testing.assert_allclose((found - truth.mean[-1]) / spread, 0.0, atol=0.07)
    gained = float(truth.log_evidence[-1] - truth.log_evidence[3])
    assert session.log_evidence == pytest.approx(gained, abs=0.1)
    assert session.predict(horizon=2).observations.mean().shape == (2, 2)


def test_weights_count():
    draws, weights = RNG.normal(size=(4000, 2)), np.zeros(4000)
    weights = np.exp(-0.5 * np.sum((draws - 0.7) ** 2, axis=1))  # N(0, 1) times this is N(0.35, 1/2)
    session = pfbr.Session.from_draws(MODEL, draws, weights=weights, method="prior", num_particles=8)
    mean, cov = session.model.prior.moments()
    np.testing.assert_allclose(mean, 0.35, atol=0.06)
    np.testing.assert_allclose(np.diag(cov), 0.5, atol=0.06)
    assert 1500 < session.prior_fit.effective < 3500


class Scale(pfbr.Model):
    unknowns: ClassVar = {"mu": (2,), "sigma": pfbr.positive}

    def sample_prior(self, key):
        return {"mu": jax.random.normal(key, (2,)), "sigma": jnp.ones(())}

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x["mu"])) - x["sigma"]

    def log_likelihood(self, x, observation):
        return jax.scipy.stats.norm.logpdf(observation, x["mu"], x["sigma"])

    def sample_observation(self, key, x):
        return x["mu"] + x["sigma"] * jax.random.normal(key, (2,))


NAMED = {"mu": RNG.normal(size=(2000, 2)) + 5, "sigma": np.exp(0.3 * RNG.normal(size=2000))}


def test_named_unknowns_keep_their_names_and_constraints():
    session = pfbr.Session.from_draws(Scale(), NAMED, method="prior", num_particles=256)
    posterior = session.posterior
    assert np.all(posterior.samples["sigma"] > 0)
    np.testing.assert_allclose(posterior.mean()["mu"], 5.0, atol=0.3)  # z = 5
    np.testing.assert_allclose(np.log(posterior.samples["sigma"]).std(), 0.3, atol=0.07)
    x = {"mu": jnp.array([5.0, 5.5]), "sigma": jnp.array(1.2)}
    on_their_scale = jax.scipy.stats.norm.logpdf(jnp.log(1.2), 0, 0.3) - jnp.log(1.2)
    exact = jnp.sum(jax.scipy.stats.norm.logpdf(x["mu"], 5.0)) + on_their_scale
    np.testing.assert_allclose(session.model.log_prior(x), exact, atol=0.1)


def test_a_doubtful_prior_says_so():
    with pytest.warns(UserWarning, match="heavy tails"):
        session = pfbr.Session.from_draws(MODEL, RNG.standard_cauchy(size=(500, 2)), method="prior", num_particles=8)
    assert session.prior_fit.flagged


WRONG = {
    "another width": (MODEL, np.zeros((9, 3)), {}, r"shape \(n, 2\)"),
    "a dict for a vector": (MODEL, {"x": np.zeros((9, 2))}, {}, "a vector"),
    "no number": (MODEL, np.full((9, 2), np.nan), {}, "nan"),
    "too few": (MODEL, RNG.normal(size=(3, 2)), {}, "at least 4"),
    "what does not vary": (MODEL, np.stack([RNG.normal(size=9), np.ones(9)], 1), {}, "number 1 of the unknown's 2"),
    "an array for names": (Scale(), np.zeros((9, 3)), {}, "unknowns mu, sigma"),
    "another name": (Scale(), {"mu": NAMED["mu"], "tau": NAMED["sigma"]}, {}, "keys mu, tau"),
    "another shape": (Scale(), {"mu": NAMED["sigma"], "sigma": NAMED["sigma"]}, {}, r"draws\['mu'\].*\(n, 2\)"),
    "another length": (Scale(), {"mu": NAMED["mu"], "sigma": NAMED["sigma"][:9]}, {}, "holds 9 draws"),
    "outside": (Scale(), {"mu": NAMED["mu"], "sigma": -NAMED["sigma"]}, {}, r"draws\['sigma'\].*constraint"),
    "negative weights": (MODEL, RNG.normal(size=(9, 2)), {"weights": -np.ones(9)}, "`weights`"),
    "too few weights": (MODEL, RNG.normal(size=(9, 2)), {"weights": np.ones(8)}, "`weights`"),
    "parameters": (Level(), RNG.normal(size=(9, 1)), {}, "parameters beside its state"),
}


@pytest.mark.parametrize("name", WRONG)
def test_draws_that_cannot_be_used_are_refused(name):
    model, draws, settings, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        pfbr.Session.from_draws(model, draws, **settings)
