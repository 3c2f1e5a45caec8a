"""Summaries of weighted draws are NumPy's, on the user's own scale."""

from typing import ClassVar

import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.inference.draws import Draws, systematic_indices
from pfbr.inference.info import Info
from pfbr.inference.posterior import Posterior
from pfbr.models.constraints import Positive
from pfbr.models.unknowns import Unknowns
from pfbr.particles.particles import Particles, normalise


def test_summaries_are_numpys():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(50, 3)), rng.dirichlet(np.ones(50))
    weighted = Posterior(Particles(jnp.asarray(points), jnp.asarray(np.log(weights))), Info())
    np.testing.assert_allclose(weighted.weights, weights, rtol=1e-5)
    np.testing.assert_allclose(weighted.mean(), np.average(points, axis=0, weights=weights), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.cov(), np.cov(points.T, aweights=weights), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.std() ** 2, np.diag(weighted.cov()), rtol=1e-4)
    np.testing.assert_allclose(weighted.expectation(lambda x: x @ x), weights @ np.sum(points**2, 1), rtol=1e-5)
    equal = Posterior(Particles(jnp.asarray(points), normalise(jnp.zeros(50))), Info())
    np.testing.assert_array_equal(equal.samples, equal.particles)
    q = np.array([[0.05, 0.5], [0.31, 0.95]])
    assert equal.quantile(q).shape == (2, 2, 3)
    np.testing.assert_allclose(equal.quantile(q), np.quantile(points, q, axis=0, method="hazen"), atol=1e-5)
    for wrong in (-0.1, 1.1, np.nan):
        with pytest.raises(InputError, match="between 0 and 1"):
            equal.quantile(wrong)


def test_weighted_quantiles_are_those_of_the_weighted_law():
    """Points spread evenly, weighted by a normal density: quantiles of that normal, to the spacing of the points."""
    grid = np.linspace(-5, 5, 401)[:, None]
    draws = Draws.of(grid, -0.5 * grid[:, 0] ** 2, None)
    q = np.array([0.025, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(draws.quantile(q)[:, 0], scipy.stats.norm.ppf(q), atol=0.01)


def test_samples_are_equally_weighted_draws_of_the_same_law():
    weights = np.array([[0.1, 0.1, 0.3, 0.5], [0.25, 0.25, 0.25, 0.25]])
    np.testing.assert_array_equal(systematic_indices(weights), [[1, 2, 3, 3], [0, 1, 2, 3]])


class Named(pfbr.Model):
    """Two coefficients and a scale, in units of their own."""

    unknowns = {"beta": (2,), "sigma": pfbr.positive}  # noqa: RUF012

    def sample_prior(self, key):
        a, b = jax.random.split(key)
        return {"beta": jax.random.normal(a, (2,)), "sigma": jnp.exp(jax.random.normal(b))}

    def log_prior(self, x):
        log_sigma = jnp.log(x["sigma"])
        normal = jax.scipy.stats.norm.logpdf
        return jnp.sum(normal(x["beta"])) + normal(log_sigma) - log_sigma

    def log_likelihood(self, x, observation, *, inputs):
        return jax.scipy.stats.norm.logpdf(observation[0], inputs @ x["beta"], x["sigma"])


def test_named_unknowns_are_dicts_on_their_own_scale_everywhere():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 2))
    values = rows @ np.array([1.0, -0.5]) + 0.3 * rng.normal(size=30)
    trace = pfbr.run(Named(), values[:, None], inputs=rows, method="ibis", num_particles=128)
    assert trace.mean()["beta"].shape == (30, 2)
    assert trace.quantile([0.1, 0.9])["sigma"].shape == (2, 30)
    last = trace[-1]
    np.testing.assert_allclose(last.mean()["beta"], [1.0, -0.5], atol=0.25)
    assert last.samples["sigma"].shape == (128,)
    assert np.all(last.samples["sigma"] > 0)
    free = last.particles  # the scale's logarithm is the last of the free numbers
    np.testing.assert_allclose(
        np.exp(free[:, 2]), Draws.of(free, np.zeros(128), Unknowns.of(Named())).values["sigma"], rtol=1e-5
    )
    import arviz

    summary = arviz.summary(pfbr.to_arviz(last), kind="stats")
    assert list(summary.index) == ["beta[0]", "beta[1]", "sigma"]


def test_the_prior_of_free_numbers_has_the_jacobian():
    """E of a function under draws of the prior is its integral against the density of the free numbers."""
    from pfbr.models.conditions import Conditions, bind

    class Scale(pfbr.Model):
        unknowns = {"sigma": pfbr.positive}  # noqa: RUF012

        def sample_prior(self, key):
            return {"sigma": jax.random.exponential(key)}

        def log_prior(self, x):
            return -x["sigma"]

        def log_likelihood(self, x, observation):
            return 0.0 * x["sigma"]

    bound = bind(Scale(), Conditions())
    grid = jnp.linspace(-12, 4, 2001)[:, None]
    density = jnp.exp(jax.vmap(bound.log_prior)(grid))
    np.testing.assert_allclose(jnp.trapezoid(density, grid[:, 0]), 1.0, atol=1e-4)
    np.testing.assert_allclose(jnp.trapezoid(density * jnp.exp(grid[:, 0]), grid[:, 0]), 1.0, atol=1e-3)


class Counted(Positive):
    """A scale that tells how often it was traced."""

    traced: ClassVar[list] = []

    def constrain(self, free):
        self.traced.append(free)
        return super().constrain(free)


def test_names_are_compiled_once_for_all_posteriors():
    unknowns = Unknowns(("scale",), (Counted(),))
    for seed in range(3):
        points = np.random.default_rng(seed).normal(size=(8, 1)).astype(np.float32)
        np.testing.assert_allclose(Draws.of(points, np.zeros(8), unknowns).values["scale"], np.exp(points[:, 0]), 1e-5)
    assert len(Counted.traced) == 1
