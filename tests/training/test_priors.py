"""Priors drawn from a Dirichlet process, and a model with its prior replaced."""

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.models import GaussianMean, LogisticRegression
from pfbr.models.base import normal_log_density
from pfbr.models.conditions import Conditions, bind
from pfbr.particles.mixtures import MixtureOfGaussians
from pfbr.training.priors import DirichletProcess, PriorReplaced


def mixture():
    scales = jnp.array([[[0.5, 0.0], [0.2, 0.4]], [[0.8, 0.0], [-0.3, 0.6]]])
    return MixtureOfGaussians(jnp.log(jnp.array([0.3, 0.7])), jnp.array([[-1.0, 0.5], [1.5, -0.5]]), scales)


def test_concentration_sets_the_number_of_lumps():
    """Weights sum to one; E w_1 = 1/(1 + a) (mean of Beta(1, a)), so larger a spreads the mass. 1000 draws, z = 6."""
    lumps = []
    keys = jax.random.split(jax.random.key(2), 1000)
    draw = jax.jit(lambda a: jax.vmap(DirichletProcess(2, concentration=a, components=20).sample)(keys))
    for concentration in (0.3, 1.0, 5.0):
        drawn = draw(jnp.asarray(concentration))
        weights, scales = np.exp(np.asarray(drawn.log_weights)), np.asarray(drawn.scales)
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-4)
        assert abs(weights[:, 0].mean() - 1 / (1 + concentration)) < 6 * weights[:, 0].std() / np.sqrt(1000)
        lumps.append(np.mean(1 / np.sum(weights**2, axis=1)))
        assert np.array_equal(scales, np.tril(scales))
        assert np.all(np.diagonal(scales, axis1=2, axis2=3) > 0)
    assert lumps[0] * 1.2 < lumps[1] < lumps[2] / 1.5


def test_components_have_random_axes_about_the_asked_width():
    """The median of a log-normal is its scale: half of the standard deviations lie below `width` (z = 6)."""
    draw = jax.jit(lambda k: DirichletProcess(2, components=500, spread=2.0, width=0.5).sample(k))
    drawn = draw(jax.random.key(0))
    stds = np.linalg.svd(np.asarray(drawn.scales), compute_uv=False)
    assert abs(np.mean(stds < 0.5) - 0.5) < 6 * 0.5 / np.sqrt(1000)
    assert abs(np.std(drawn.means) / 2.0 - 1) < 6 / np.sqrt(2 * 1000)
    correlated = np.asarray(drawn.scales)[:, 1, 0]
    assert abs(np.mean(correlated > 0) - 0.5) < 6 * 0.5 / np.sqrt(500)


def test_a_replaced_prior_keeps_the_rest_of_the_model():
    inner, prior = GaussianMean(2), mixture()
    model = PriorReplaced(inner, prior)
    assert model.dim == 2
    assert model.linear_gaussian() is None  # the exact posterior of another prior would be wrong

    @jax.jit
    def both(x, o, key):
        ours = model.log_prior(x), model.log_likelihood(x, o), model.sample_prior(key), model.sample_observation(key, x)
        theirs = prior.log_density(x), inner.log_likelihood(x, o), prior.sample(key), inner.sample_observation(key, x)
        return list(zip(ours, theirs, strict=True))

    for ours, theirs in both(jnp.array([0.1, 0.2]), jnp.array([1.0, 2.0]), jax.random.key(0)):
        np.testing.assert_array_equal(ours, theirs)


def test_inputs_are_passed_on():
    inner, x, u = LogisticRegression(2), jnp.array([0.1, 0.2]), jnp.array([1.0, -1.0])
    model = bind(PriorReplaced(inner, mixture()), Conditions(inputs=u))
    np.testing.assert_allclose(
        model.log_likelihood(x, jnp.ones(1)), inner.log_likelihood(x, jnp.ones(1), inputs=u), rtol=1e-6
    )
    assert model.sample_inputs(jax.random.key(0)).shape == (2,)


class Positive(pfbr.Model):
    unknowns = {"rate": pfbr.positive(2)}  # noqa: RUF012

    def sample_prior(self, key):
        return {"rate": jnp.ones(2)}

    def log_prior(self, x):
        return jnp.zeros(())

    def log_likelihood(self, x, observation):
        return normal_log_density(observation, x["rate"], 1.0)


def test_a_model_with_named_unknowns_gets_a_prior_of_its_free_numbers():
    x, o = jnp.array([0.1, 0.2]), jnp.array([1.0, 2.0])
    model = PriorReplaced(Positive(), mixture())
    assert model.dim == 2
    np.testing.assert_allclose(model.log_likelihood(x, o), normal_log_density(o, jnp.exp(x), 1.0), rtol=1e-6)
    assert bind(model, Conditions()) is model
