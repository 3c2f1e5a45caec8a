"""The Gaussian that scores describe is exact for a Gaussian target, and the map to it leaves equal weights."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.affine import affine_map, fit_gaussian, law_of
from pfbr.inference.adaptive.static.target import Evaluation
from pfbr.particles.whitening import whitening_of

MEAN, COV = jnp.array([1.0, -2.0]), jnp.array([[2.0, 0.6], [0.6, 0.5]])


def log_target(x):
    return -0.5 * (x - MEAN) @ jnp.linalg.solve(COV, x - MEAN)


def at(points):
    value, score = jax.vmap(jax.value_and_grad(log_target))(points)
    zero = jnp.zeros_like(value)
    return Evaluation(value, score, zero, jnp.zeros_like(score))


def test_scores_of_a_gaussian_give_its_mean_and_precision_from_any_cloud(x64):
    points = jax.random.uniform(jax.random.key(0), (9, 2)) * jnp.array([1.0, 5.0])
    fit = fit_gaussian(points, at(points).past_score, jnp.full(9, 1 / 9))
    np.testing.assert_allclose(fit.mean, MEAN, rtol=1e-6)
    np.testing.assert_allclose(fit.precision, jnp.linalg.inv(COV), rtol=1e-6)
    assert bool(fit.usable)


def test_the_law_is_that_of_the_target_and_not_of_the_cloud(x64):
    points = 3.0 * jax.random.normal(jax.random.key(1), (12, 2))
    law = law_of(points, at(points).past_score, jnp.zeros(12))
    np.testing.assert_allclose(law.mean, MEAN, rtol=1e-6)
    np.testing.assert_allclose(law.scale @ law.scale.T, COV, rtol=1e-6)


def test_a_map_between_gaussians_leaves_equal_weights_and_says_the_evidence(x64):
    """From N(0, I) with its own log density to the target: weights are all log ∫ target / ∫ source = ½ log det COV."""
    u = jax.random.normal(jax.random.key(2), (8, 2))
    frame = whitening_of(u)
    source = frame.inner(frame.whiten(jnp.zeros((1, 2)))[0], frame.inverse_scale)  # N(0, I)
    # the cloud is from N(0, I), so that weights for the target are target − source
    weights = jax.vmap(log_target)(u) + 0.5 * jnp.sum(u**2, axis=1)
    mapped = affine_map(at, u, at(u), source, weights, jnp.ones(()))
    np.testing.assert_allclose(mapped.log_weights, 0.5 * jnp.linalg.slogdet(COV)[1], rtol=1e-5)
    values, vectors = jnp.linalg.eigh(COV)
    root = (vectors * jnp.sqrt(values)) @ vectors.T  # the symmetric one
    np.testing.assert_allclose(mapped.points, MEAN + u @ root, rtol=1e-5)


def test_a_mode_that_the_map_leaves_behind_is_seen(x64):
    """Two hundredths of the target sit twenty standard deviations off: equal weights, and yet something is missing."""
    key = jax.random.key(3)
    points = jax.random.normal(key, (200, 2)).at[:4].add(jnp.array([20.0, 0.0]))
    one_mode = lambda p: Evaluation(-0.5 * jnp.sum(p**2, 1), -p, jnp.zeros(len(p)), jnp.zeros_like(p))
    scores = jnp.where(jnp.arange(200)[:, None] < 4, jnp.array([20.0, 0.0]) - points, -points)
    here = Evaluation(jnp.zeros(200), scores, jnp.zeros(200), jnp.zeros_like(points))
    frame = whitening_of(points[4:])
    behind = affine_map(one_mode, points, here, frame, jnp.zeros(200), jnp.ones(()))
    whole = affine_map(one_mode, points[4:], one_mode(points[4:]), frame, jnp.zeros(196), jnp.ones(()))
    assert float(whole.left_out) == 0.0
    assert float(behind.left_out) >= 0.02


def test_where_the_target_curves_upwards_no_map_is_offered():
    points = jax.random.normal(jax.random.key(0), (16, 2))
    fit = fit_gaussian(points, points, jnp.full(16, 1 / 16))
    assert not bool(fit.usable)
    assert np.all(np.isfinite(fit.mean))
    assert float(jnp.linalg.eigvalsh(fit.precision)[0]) > 0
