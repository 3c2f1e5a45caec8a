"""Weights of a flow: equal where the flow is exact; a continued density is the density where it is quadratic."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference import correction
from pfbr.particles.particles import equally_weighted

continued_log_density = jax.jit(correction.continued_log_density)
diagnose = jax.jit(correction.diagnose)
RNG = np.random.default_rng(3)


def test_weights_of_exact_draws_are_equal_and_sum_to_the_evidence():
    density = jnp.asarray(RNG.normal(size=40).astype(np.float32))
    weights = correction.static_log_weights(density + 1.5, density)
    np.testing.assert_allclose(weights, 1.5 - np.log(40), rtol=1e-5)


def test_a_quadratic_is_continued_as_far_as_it_fits():
    precision = np.array([[2.0, 0.4], [0.4, 0.7]])
    quadratic = lambda x: jnp.asarray(-0.5 * np.einsum("ni,ij,nj->n", x, precision, x), jnp.float32)
    anchors, there = RNG.normal(size=(80, 2)), 2 * RNG.normal(size=(30, 2))
    found = continued_log_density(jnp.asarray(anchors), quadratic(anchors), jnp.asarray(there))
    np.testing.assert_allclose(found, quadratic(there), atol=0.05)


def test_a_bent_density_is_continued_between_its_anchors_and_falls_off_beyond():
    bent = lambda x: jnp.asarray(-0.5 * x[:, 0] ** 2 - 2 * (x[:, 1] - np.sin(x[:, 0])) ** 2, jnp.float32)
    anchors = RNG.normal(size=(400, 2))
    inside = 0.7 * RNG.normal(size=(50, 2))
    found = continued_log_density(jnp.asarray(anchors), bent(anchors), jnp.asarray(inside))
    np.testing.assert_allclose(found, bent(inside), atol=0.15)
    far = continued_log_density(jnp.asarray(anchors), bent(anchors), jnp.asarray([[30.0, 30.0]]))
    assert float(far[0]) < -1000


def test_an_anchor_without_a_density_spoils_nothing():
    anchors = RNG.normal(size=(60, 1))
    values = jnp.asarray(-0.5 * anchors[:, 0] ** 2, jnp.float32).at[7].set(-jnp.inf)
    assert np.all(np.isfinite(continued_log_density(jnp.asarray(anchors), values, jnp.asarray(anchors))))


@pytest.mark.parametrize(("shortfall", "expected"), [(0.0, 0.0), (3.0, 10.0)], ids=["all there", "a mode left behind"])
def test_evidence_that_falls_short_of_weighing_is_seen(shortfall, expected):
    """Likelihoods alternate between 1 and 2, so that weighing knows their mean, 1.5, to a twenty-fourth of it."""
    prior = equally_weighted(jnp.zeros((64, 1)))
    values = jnp.log(jnp.tile(jnp.array([1.0, 2.0]), 32))
    report = diagnose(jnp.full(64, -jnp.log(64.0)), prior, values, jnp.log(1.5) - shortfall)
    assert float(report["ess"]) == pytest.approx(64, rel=1e-4)
    assert float(report["missed"]) >= expected - 1e-3
    assert (float(report["missed"]) > 4) == (shortfall > 0)
