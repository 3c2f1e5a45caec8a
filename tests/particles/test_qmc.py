"""Quasi-Monte Carlo draws fill space evenly, match moments exactly, and are fair one by one."""

import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

from pfbr.models import GaussianMean, LinearDynamics
from pfbr.particles.mixtures import MixtureOfGaussians
from pfbr.particles.qmc import (
    draw_prior,
    draw_transition,
    match_moments,
    random_order,
    shuffled_sobol_normal,
    sobol_normal,
)
from pfbr.training.priors import PriorReplaced

sobol = jax.jit(jax.vmap(sobol_normal, (0, None, None)), static_argnums=(1, 2))
matched_apart = jax.jit(lambda noise, points: match_moments(noise, apart_from=points))


@pytest.mark.parametrize("num", [16, 64, 256])
def test_every_elementary_interval_holds_one_point(num):
    """In each coordinate one point per interval of length 1/n; in the first two, one per box of area 1/n."""
    for normals in sobol(jax.random.split(jax.random.key(0), 4), num, 5):
        unit = scipy.stats.norm.cdf(np.asarray(normals, dtype=np.float64))
        for j in range(5):
            np.testing.assert_array_equal(np.sort(np.floor(unit[:, j] * num)), np.arange(num))
        for power in range(int(np.log2(num)) + 1):
            rows = 2**power
            boxes = np.floor(unit[:, 0] * rows) * (num // rows) + np.floor(unit[:, 1] * (num // rows))
            np.testing.assert_array_equal(np.sort(boxes), np.arange(num))


def test_each_point_by_itself_is_a_fair_draw():
    """Over 4000 keys the first, a middle and the last point are standard normal, uncorrelated between coordinates."""
    draws = np.asarray(sobol(jax.random.split(jax.random.key(1), 4000), 16, 2))
    for index in (0, 7, 15):
        for j in range(2):
            assert scipy.stats.kstest(draws[:, index, j], "norm").pvalue > 1e-5
        assert abs(np.corrcoef(draws[:, index].T)[0, 1]) < 5 / np.sqrt(4000)
    assert len(np.unique(draws[:, 0, 0])) > 3900  # another key, another set


def test_quasi_monte_carlo_beats_random_draws():
    """Over 200 keys, n = 256, d = 3: the root mean square error of E[x], E[x²], E[x1 x2] is at most a fifth, a third
    and two thirds of that of i.i.d. draws, and after matching also E[cos x] is at most a third."""
    keys = jax.random.split(jax.random.key(2), 200)

    @jax.jit
    def errors(points):
        means = [points, points**2 - 1, points[:, :, :1] * points[:, :, 1:2], jnp.cos(points) - jnp.exp(-0.5)]
        return [jnp.sqrt(jnp.mean(jnp.mean(m, axis=1) ** 2)) for m in means]

    even = sobol(keys, 256, 3)
    random = jax.random.normal(jax.random.key(3), even.shape)
    ratios = np.array(errors(even)) / np.array(errors(random))
    assert np.all(ratios < np.array([1 / 5, 1 / 3, 2 / 3, 1 / 3])), ratios
    matched = jax.jit(jax.vmap(match_moments))(even)
    assert errors(matched)[3] < errors(random)[3] / 3


@pytest.mark.parametrize(("n", "d"), [(100, 5), (31, 2)])
def test_moments_are_matched_exactly_and_apart_from_the_points(n, d):
    """To 2e-5 in float32: noise of mean zero, covariance one, no correlation with the points it is added to."""
    points_key, noise_key = jax.random.split(jax.random.key(n))
    points = 3.0 + jax.random.normal(points_key, (n, d)) @ jnp.triu(jnp.ones((d, d)))
    noise = matched_apart(jax.random.normal(noise_key, (n, d)), points)
    np.testing.assert_allclose(jnp.mean(noise, 0), 0, atol=2e-5)
    np.testing.assert_allclose(noise.T @ noise / n, np.eye(d), atol=2e-5)
    np.testing.assert_allclose((points - points.mean(0)).T @ noise / n, 0, atol=2e-5 * d)


def test_few_particles_are_left_finite():
    for n in (1, 2, 7):
        assert np.all(np.isfinite(matched_apart(jax.random.normal(jax.random.key(0), (n, 3)), jnp.ones((n, 3)))))


def test_particles_start_and_move_with_the_moments_of_the_formula():
    """Prior and prediction of a linear system: mean and covariance of 128 particles to 1e-4."""
    model = LinearDynamics([[0.9, 0.3], [-0.2, 0.8]], jnp.eye(2), transition_std=0.5, prior_std=1.5)

    @jax.jit
    def drawn(key):
        prior_key, move_key = jax.random.split(key)
        points = draw_prior(prior_key, model, 128)
        return points, draw_transition(move_key, model, points + jnp.array([1.0, -2.0]))

    points, moved = drawn(jax.random.key(0))
    A = np.asarray(model.A)
    np.testing.assert_allclose(jnp.mean(points, 0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(points.T, ddof=0), 2.25 * np.eye(2), atol=1e-4)
    np.testing.assert_allclose(jnp.mean(moved, 0), A @ [1.0, -2.0], atol=1e-4)
    np.testing.assert_allclose(np.cov(moved.T, ddof=0), 2.25 * A @ A.T + 0.25 * np.eye(2), atol=1e-4)
    other_points, other_moved = drawn(jax.random.key(1))
    assert not np.array_equal(points, other_points)
    assert not np.array_equal(moved, other_moved)


def test_noise_does_not_depend_on_the_particle():
    """The noise of one given particle is standard normal over keys; unshuffled Sobol points would repeat a pattern."""
    model = LinearDynamics(jnp.eye(2), jnp.eye(2))
    points = jax.random.normal(jax.random.key(0), (64, 2))
    moved = jax.jit(jax.vmap(lambda k: draw_transition(k, model, points)))(jax.random.split(jax.random.key(1), 1000))
    noise = np.asarray(moved - points)
    for index in (0, 31, 63):
        assert scipy.stats.kstest(noise[:, index, 0], "norm").pvalue > 1e-5
    pair = np.corrcoef(noise[:, 0, 0], noise[:, 1, 0])[0, 1]
    assert abs(pair + 1 / 63) < 5 / np.sqrt(1000)  # mean zero over the set: any two are correlated by −1/(n−1)


@pytest.mark.parametrize("num", [2, 3, 5, 64, 100])
def test_a_random_order_has_every_place_once_and_all_orders_are_alike(num):
    orders = np.asarray(jax.jit(jax.vmap(lambda k: random_order(k, num)))(jax.random.split(jax.random.key(2), 6000)))
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.arange(num) * np.ones((6000, 1)))
    for place in {0, 1, num - 1}:  # what stands there, and what stands there next to what
        counts = np.bincount(orders[:, place], minlength=num)
        assert scipy.stats.chisquare(counts).pvalue > 1e-5
        together = np.corrcoef(orders[:, place], orders[:, (place + 1) % num])[0, 1]
        assert abs(together + 1 / (num - 1)) < 5 / np.sqrt(6000)


@pytest.mark.parametrize("num", [64, 100])
def test_shuffled_points_say_nothing_of_points_in_order(num):
    """Particles are drawn in Sobol's order, and so is noise that is not shuffled: signs and sizes would go together."""

    def together(key):
        first, other = jax.random.split(key)
        x, z = sobol_normal(first, num, 2), shuffled_sobol_normal(other, num, 2)
        return jnp.stack([jnp.mean(f(x[:, 0]) * f(z[:, 0])) for f in (jnp.sign, lambda a: a, lambda a: a**2 - 1)])

    found = np.asarray(jax.jit(jax.vmap(together))(jax.random.split(jax.random.key(3), 1000)))
    assert np.all(np.abs(found.mean(0)) < 5 * found.std(0) / np.sqrt(1000))
    np.testing.assert_allclose(found.std(0) * np.sqrt(num), [1.0, 1.0, 2.0], rtol=0.2)  # as of independent draws


def test_shuffled_points_are_the_same_set():
    key = jax.random.key(4)
    places = np.sort(np.asarray(shuffled_sobol_normal(key, 64, 3)), axis=0)
    uniform = scipy.stats.norm.cdf(places)
    np.testing.assert_array_equal(np.floor(64 * uniform), np.arange(64)[:, None] * np.ones((1, 3)))  # one in each cell


def test_a_prior_that_is_no_function_of_normals_is_drawn_at_random():
    two = MixtureOfGaussians(jnp.log(jnp.array([0.5, 0.5])), jnp.array([[-5.0], [5.0]]), 0.1 * jnp.ones((2, 1, 1)))
    model = PriorReplaced(GaussianMean(1), two)
    points = jax.jit(lambda key: draw_prior(key, model, 400))(jax.random.key(0))[:, 0]
    share = float(jnp.mean(points > 0))
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(400)
    assert share != 0.5 or float(jnp.mean(points)) != 0
    assert np.all(np.abs(np.abs(points) - 5) < 1)
    plain = jax.jit(lambda key: draw_prior(key, GaussianMean(1), 64, qmc=False))(jax.random.key(0))
    assert abs(float(jnp.mean(plain))) > 1e-4  # i.i.d. draws do not average to zero
