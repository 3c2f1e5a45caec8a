"""Densities are those of SciPy, integrate to one and belong to the samplers beside them."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError, ModelError
from pfbr.metrics.truth import kalman
from pfbr.models import (
    GaussianMean,
    GaussianMixture,
    LinearDynamics,
    LogisticRegression,
    MiniBatch,
    has_observations,
    observation_shape,
)
from pfbr.models.simulate import simulate
from pfbr.training.tasks import ModelFamily

PLANE = {
    "gaussian mean": GaussianMean(2, prior_std=1.3),
    "gaussian mixture": GaussianMixture(prior_std=0.8),
    "linear dynamics": LinearDynamics([[0.9, 0.2], [-0.1, 0.7]], [[1.0, 0.5]], prior_std=1.1),
    "logistic regression": LogisticRegression(2, prior_std=0.9),
    "mini-batch": MiniBatch(GaussianMean(2, prior_std=1.2), 3),
}
X = jnp.array([0.4, -1.1])
NUM = 20_000


def cells(reach=9.0, num=181):
    """Centres of the cells of a square grid, and the area of one."""
    ticks = jnp.linspace(-reach, reach, num)
    return jnp.stack(jnp.meshgrid(ticks, ticks), -1).reshape(-1, 2), float((ticks[1] - ticks[0]) ** 2)


def same_law(a, b):
    """Kolmogorov–Smirnov in every coordinate; with fixed seeds an alarm at 1e-5 is a difference, not bad luck."""
    a, b = np.asarray(a).reshape(len(a), -1), np.asarray(b).reshape(len(b), -1)
    assert min(scipy.stats.ks_2samp(a[:, j], b[:, j]).pvalue for j in range(a.shape[1])) > 1e-5
    shift = np.cov(a.T) - np.cov(b.T)
    assert np.max(np.abs(shift)) < 6 * np.sqrt(2 * 2 / len(a)) * max(1.0, np.abs(np.cov(b.T)).max())


@pytest.mark.parametrize("name", PLANE)
def test_the_prior_is_normalised_and_is_the_law_of_its_sampler(name):
    model = PLANE[name]
    points, area = cells()
    mass = jnp.exp(jax.vmap(model.log_prior)(points)) * area
    assert abs(float(jnp.sum(mass)) - 1) < 1e-4
    draws = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), NUM))
    second = np.asarray((points * mass[:, None]).T @ points)
    error = np.sqrt(2) * second.max() / np.sqrt(NUM)
    np.testing.assert_allclose(np.asarray(draws.T @ draws) / NUM, second, atol=6 * error)  # z = 6
    normals = jax.random.normal(jax.random.key(1), (NUM, 2))
    same_law(jax.vmap(model.prior_from_normal)(normals), draws)


def test_the_transition_is_normalised_and_is_the_law_of_its_sampler():
    model = PLANE["linear dynamics"]
    points, area = cells()
    mass = jnp.exp(jax.vmap(model.log_transition, (0, None))(points, X)) * area
    assert abs(float(jnp.sum(mass)) - 1) < 1e-4
    draws = jax.vmap(model.sample_transition, (0, None))(jax.random.split(jax.random.key(0), NUM), X)
    np.testing.assert_allclose(jnp.mean(draws, 0), mass @ points, atol=6 / np.sqrt(NUM))  # z = 6
    normals = jax.random.normal(jax.random.key(1), (NUM, 2))
    same_law(jax.vmap(model.transition_from_normal, (None, 0))(X, normals), draws)


def test_likelihoods_are_scipys():
    normal = scipy.stats.norm
    x, o = np.asarray(X), np.array([0.7, 2.0])
    expected = normal.logpdf(o, x, 3.0).sum()
    np.testing.assert_allclose(GaussianMean(2).log_likelihood(X, jnp.asarray(o)), expected, rtol=1e-5)
    expected = np.log(0.5 * normal.pdf(0.7, x[0]) + 0.5 * normal.pdf(0.7, x[0] + x[1]))
    np.testing.assert_allclose(GaussianMixture().log_likelihood(X, jnp.array([0.7])), expected, rtol=1e-5)
    system = PLANE["linear dynamics"]
    expected = normal.logpdf(1.5, np.asarray(system.B) @ x, 1.0).sum()
    np.testing.assert_allclose(system.log_likelihood(X, jnp.array([1.5])), expected, rtol=1e-5)
    logistic, probability = LogisticRegression(2), 1 / (1 + np.exp(-o @ x))
    for label in (0, 1):
        got = logistic.log_likelihood(X, jnp.array([*o, label]))
        np.testing.assert_allclose(got, scipy.stats.bernoulli.logpmf(label, probability), rtol=1e-5)


@pytest.mark.parametrize("name", ["gaussian mean", "gaussian mixture", "linear dynamics"])
def test_observations_follow_the_likelihood(name):
    """The likelihood integrates to one over observations, and its mean is that of the sampler (z = 6)."""
    model = PLANE[name]
    size = observation_shape(model)[0]
    points, area = cells(reach=18.0) if size == 2 else (jnp.linspace(-18, 18, 3001)[:, None], 36 / 3000)
    mass = jnp.exp(jax.vmap(model.log_likelihood, (None, 0))(X, points)) * area
    assert abs(float(jnp.sum(mass)) - 1) < 1e-3
    draws = jax.vmap(model.sample_observation, (0, None))(jax.random.split(jax.random.key(2), NUM), X)
    second = np.asarray(mass @ points**2)
    np.testing.assert_allclose(jnp.mean(draws, 0), mass @ points, atol=6 * np.sqrt(second.max() / NUM))
    np.testing.assert_allclose(jnp.mean(draws**2, 0), second, atol=6 * np.sqrt(2 / NUM) * second.max())


def test_logistic_labels_follow_the_likelihood():
    model = LogisticRegression(2)
    rows = jax.vmap(model.sample_observation, (0, None))(jax.random.split(jax.random.key(3), NUM), X)
    assert rows.shape == (NUM, 3)
    assert set(np.unique(rows[:, -1])) == {0.0, 1.0}
    expected = jax.nn.sigmoid(rows[:, :2] @ X)
    z = float(jnp.sum(rows[:, 2] - expected) / jnp.sqrt(jnp.sum(expected * (1 - expected))))
    assert abs(z) < 5
    towards = float(jnp.sum((rows[:, 2] - expected) * (rows[:, :2] @ X)))  # a residual that leans is a wrong slope
    assert abs(towards) < 5 * float(jnp.sqrt(jnp.sum(expected * (1 - expected) * (rows[:, :2] @ X) ** 2)))


def test_observation_shapes():
    assert observation_shape(GaussianMean(4)) == (4,)
    assert observation_shape(GaussianMixture()) == (1,)
    assert observation_shape(PLANE["linear dynamics"]) == (1,)
    assert observation_shape(LogisticRegression(5)) == (6,)
    assert observation_shape(MiniBatch(GaussianMixture(), 7)) == (7, 1)


def test_a_random_system_has_the_asked_radius_and_is_the_same_again():
    for dim in (2, 3):
        system = LinearDynamics.random(5, dim)
        radius = np.abs(np.linalg.eigvals(np.asarray(system.A))).max()
        assert 0.9 <= radius <= 1.0
        assert system.A.shape == system.B.shape == (dim, dim)
        assert eqx.tree_equal(system, LinearDynamics.random(5, dim))
    with pytest.raises(InputError, match="square"):
        LinearDynamics(np.ones((2, 3)), np.eye(2))
    with pytest.raises(InputError, match=r"\(k, 2\)"):
        LinearDynamics(np.eye(2), np.ones((1, 3)))


def test_a_batch_is_the_product_of_its_members():
    single = GaussianMixture()
    batch = MiniBatch(single, 4)
    observations = batch.sample_observation(jax.random.key(0), X)
    expected = sum(single.log_likelihood(X, o) for o in observations)
    np.testing.assert_allclose(batch.log_likelihood(X, observations), expected, rtol=1e-5)
    assert batch.linear_gaussian() is None
    with pytest.raises(InputError, match="dynamics"):
        MiniBatch(PLANE["linear dynamics"], 4)
    with pytest.raises(InputError, match="size"):
        MiniBatch(single, 0)


def test_a_batch_as_one_observation_is_its_members_one_by_one(x64):
    """The posterior does not know whether observations came one at a time."""
    single = GaussianMean(3, prior_std=1.3, observation_std=0.7)
    stream = jnp.asarray(np.random.default_rng(0).normal(size=(8, 3)))
    together = kalman(MiniBatch(single, 4), stream.reshape(2, 4, 3))
    apart = kalman(single, stream)
    for name in ("mean", "cov", "log_evidence"):
        np.testing.assert_allclose(getattr(together, name), getattr(apart, name)[3::4], rtol=1e-9, atol=1e-12)


def test_a_static_unknown_stays_and_a_moving_one_moves_before_the_first_observation():
    observations, truths = simulate(jax.random.key(0), GaussianMean(2, observation_std=1e-3), 5)
    assert observations.shape == truths.shape == (5, 2)
    np.testing.assert_array_equal(truths, jnp.broadcast_to(truths[0], (5, 2)))
    np.testing.assert_allclose(observations, truths, atol=6e-3)
    A = jnp.array([[0.0, -0.9], [0.9, 0.0]])
    system = LinearDynamics(A, jnp.eye(2), transition_std=1e-4, observation_std=1e-4)
    observations, truths = simulate(jax.random.key(0), system, 3, at=X)
    np.testing.assert_allclose(truths[0], A @ X, atol=1e-3)
    np.testing.assert_allclose(truths[2], A @ A @ A @ X, atol=1e-3)
    np.testing.assert_allclose(observations, truths, atol=1e-3)


def test_simulated_streams_have_the_covariance_of_the_model():
    """Var o_1 = B (A P Aᵀ + Q) Bᵀ + R: one move, then one observation. 4000 streams, z = 6."""
    model = PLANE["linear dynamics"]
    streams = jax.vmap(lambda k: ModelFamily(model).sample(k, 1).observations[0, 0])
    draws = streams(jax.random.split(jax.random.key(1), 4000))
    A, Q, B, R, _, cov = (np.asarray(m) for m in model.linear_gaussian())
    expected = (B @ (A @ cov @ A.T + Q) @ B.T + R).item()
    assert abs(float(jnp.var(draws)) / expected - 1) < 6 * np.sqrt(2 / 4000)


class Own(pfbr.Model):
    """As a user writes it: a plain field for the dimension, and no sampler of observations."""

    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (self.dim,))

    def log_prior(self, x):
        return jnp.sum(jax.scipy.stats.norm.logpdf(x))

    def log_likelihood(self, x, observation):
        return jnp.sum(jax.scipy.stats.norm.logpdf(observation, x, 0.5))


def test_a_users_own_class_is_enough_to_update():
    """x ~ N(0, 1), o | x ~ N(x, ¼): after o = 1 the mean is 4/5 and the variance 1/5."""
    assert observation_shape(Own()) is None
    assert not has_observations(Own())
    with pytest.raises(ModelError, match="sample_observation"):
        Own().sample_observation(jax.random.key(0), jnp.zeros(1))
    operator = pfbr.gaussian_operator(steps=16)
    session = pfbr.Session(jax.random.key(0), operator, Own(), num_particles=4096)
    posterior = session.update([1.0])
    assert abs(posterior.mean()[0] - 0.8) < 6 * np.sqrt(0.2 / 4096)  # its prior is drawn i.i.d.: z = 6
    assert abs(posterior.cov()[0, 0] / 0.2 - 1) < 6 * np.sqrt(2 / 4096)
