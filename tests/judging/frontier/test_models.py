"""The frontier's own models: laws that agree with their draws, and an integration that a finer one confirms."""

import jax
import numpy as np
from jax import numpy as jnp
from scipy import stats

from pfbr.judging.frontier.models import Volatility, Weather, _slope


def test_volatility_is_its_formulas():
    model, x = Volatility(), jnp.array([0.7])
    np.testing.assert_allclose(model.log_likelihood(x, jnp.array([1.3])), stats.norm.logpdf(1.3, 0, np.exp(0.35)), 1e-5)
    moved = model.transition_from_normal(x, jnp.array([2.0]))
    np.testing.assert_allclose(moved, 0.97 * 0.7 + 0.4, 1e-6)
    np.testing.assert_allclose(model.log_transition(moved, x), stats.norm.logpdf(2.0) - np.log(0.2), 1e-5)
    stationary = 0.2 / np.sqrt(1 - 0.97**2)
    np.testing.assert_allclose(model.log_prior(x), stats.norm.logpdf(0.7, 0, stationary), 1e-5)


def test_weather_moves_as_a_finer_integration_does():
    start = jnp.array([1.5, -1.5, 25.5])
    fine = jax.lax.fori_loop(0, 25_000, lambda _, x: x + 1e-5 * _slope(x), start)
    np.testing.assert_allclose(Weather().sample_transition(jax.random.key(0), start), fine, rtol=5e-3)
