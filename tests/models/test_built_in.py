"""The built-in models: densities are those of SciPy, integrate to one and belong to the samplers beside them."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.models import (
    GaussianMean,
    GaussianMixture,
    LinearDynamics,
    LogisticRegression,
    MiniBatch,
    observation_shape,
)

PLANE = {
    "gaussian mean": lambda: GaussianMean(2, prior_std=1.3),
    "gaussian mixture": lambda: GaussianMixture(prior_std=0.8),
    "linear dynamics": lambda: LinearDynamics([[0.9, 0.2], [-0.1, 0.7]], [[1.0, 0.5]], prior_std=1.1),
    "logistic regression": lambda: LogisticRegression(2, prior_std=0.9),
    "mini-batch": lambda: MiniBatch(GaussianMean(2, prior_std=1.2), 3),
}
X = np.array([0.4, -1.1])
NUM = 20_000


def cells(reach=9.0, num=181):
    """Centres of the cells of a square grid, and the area of one."""
    ticks = jnp.linspace(-reach, reach, num)
    return jnp.stack(jnp.meshgrid(ticks, ticks), -1).reshape(-1, 2), (ticks[1] - ticks[0]) ** 2


def same_law(a, b):
    """Kolmogorov–Smirnov in every coordinate; with fixed seeds an alarm at 1e-5 is a difference, not bad luck."""
    a, b = np.asarray(a).reshape(len(a), -1), np.asarray(b).reshape(len(b), -1)
    assert min(scipy.stats.ks_2samp(a[:, j], b[:, j]).pvalue for j in range(a.shape[1])) > 1e-5
    shift = np.cov(a.T) - np.cov(b.T)
    assert np.max(np.abs(shift)) < 6 * np.sqrt(2 * 2 / len(a)) * max(1.0, np.abs(np.cov(b.T)).max())


def keys(seed, num=NUM):
    return jax.random.split(jax.random.key(seed), num)


@pytest.mark.parametrize("name", PLANE)
def test_the_prior_is_normalised_and_is_the_law_of_its_sampler(name):
    model = PLANE[name]()

    @jax.jit
    def drawn():
        points, area = cells()
        mass = jnp.exp(jax.vmap(model.log_prior)(points)) * area
        normals = jax.random.normal(jax.random.key(1), (NUM, 2))
        draws = jax.vmap(model.sample_prior)(keys(0))
        return jnp.sum(mass), (points * mass[:, None]).T @ points, draws, jax.vmap(model.prior_from_normal)(normals)

    total, second, draws, from_normals = drawn()
    assert abs(float(total) - 1) < 1e-4
    error = np.sqrt(2) * np.max(second) / np.sqrt(NUM)
    np.testing.assert_allclose(np.asarray(draws).T @ draws / NUM, second, atol=6 * error)  # z = 6
    same_law(from_normals, draws)


def test_the_transition_is_normalised_and_is_the_law_of_its_sampler():
    model, x = PLANE["linear dynamics"](), jnp.asarray(X)

    @jax.jit
    def drawn():
        points, area = cells()
        mass = jnp.exp(jax.vmap(model.log_transition, (0, None))(points, x)) * area
        draws = jax.vmap(model.sample_transition, (0, None))(keys(0), x)
        normals = jax.random.normal(jax.random.key(1), (NUM, 2))
        moved = jax.vmap(model.transition_from_normal, (None, 0))(x, normals)
        return jnp.sum(mass), mass @ points, draws, moved, model.transition_mean_and_std(x)

    total, mean, draws, from_normals, (told, std) = drawn()
    assert abs(float(total) - 1) < 1e-4
    np.testing.assert_allclose(np.mean(draws, 0), mean, atol=6 / np.sqrt(NUM))  # z = 6
    same_law(from_normals, draws)
    np.testing.assert_allclose(told, mean, atol=1e-4)
    np.testing.assert_allclose(std, 1.0)


def test_likelihoods_are_scipys():
    normal, x, o = scipy.stats.norm, jnp.asarray(X), np.array([0.7, 2.0])
    system, logistic = PLANE["linear dynamics"](), LogisticRegression(2)

    @jax.jit
    def values():
        labels = [logistic.log_likelihood(x, jnp.array([label]), inputs=jnp.asarray(o)) for label in (0.0, 1.0)]
        return [
            GaussianMean(2).log_likelihood(x, jnp.asarray(o)),
            GaussianMixture().log_likelihood(x, jnp.array([0.7])),
            system.log_likelihood(x, jnp.array([1.5])),
            *labels,
        ]

    probability = 1 / (1 + np.exp(-o @ X))
    expected = [
        normal.logpdf(o, X, 3.0).sum(),
        np.log(0.5 * normal.pdf(0.7, X[0]) + 0.5 * normal.pdf(0.7, X[0] + X[1])),
        normal.logpdf(1.5, np.asarray(system.B) @ X, 1.0).sum(),
        *scipy.stats.bernoulli.logpmf([0, 1], probability),
    ]
    np.testing.assert_allclose(values(), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["gaussian mean", "gaussian mixture", "linear dynamics"])
def test_observations_follow_the_likelihood(name):
    """The likelihood integrates to one over observations, and its mean is that of the sampler (z = 6)."""
    model, x = PLANE[name](), jnp.asarray(X)
    size = observation_shape(model)[0]

    @jax.jit
    def drawn():
        points, area = cells(reach=18.0) if size == 2 else (jnp.linspace(-18, 18, 3001)[:, None], 36 / 3000)
        mass = jnp.exp(jax.vmap(model.log_likelihood, (None, 0))(x, points)) * area
        draws = jax.vmap(model.sample_observation, (0, None))(keys(2), x)
        return jnp.sum(mass), mass @ points, mass @ points**2, jnp.mean(draws, 0), jnp.mean(draws**2, 0)

    total, first, second, mean, square = (np.asarray(a) for a in drawn())
    assert abs(float(total) - 1) < 1e-3
    np.testing.assert_allclose(mean, first, atol=6 * np.sqrt(second.max() / NUM))
    np.testing.assert_allclose(square, second, atol=6 * np.sqrt(2 / NUM) * second.max())


def test_logistic_labels_follow_the_likelihood():
    """Covariates are inputs, drawn from N(0, I) where streams are simulated."""
    model, x = LogisticRegression(2), jnp.asarray(X)

    @jax.jit
    def drawn():
        inputs = jax.vmap(model.sample_inputs)(keys(4))
        return inputs, jax.vmap(lambda k, u: model.sample_observation(k, x, inputs=u))(keys(3), inputs)

    inputs, labels = (np.asarray(a, np.float64) for a in drawn())
    assert labels.shape == (NUM, 1)
    assert set(np.unique(labels)) == {0.0, 1.0}
    assert np.all(np.abs(np.cov(inputs.T) - np.eye(2)) < 6 * np.sqrt(2 / NUM))
    logit = inputs @ X
    expected = 1 / (1 + np.exp(-logit))
    left, variance = labels[:, 0] - expected, expected * (1 - expected)
    assert abs(left.sum() / np.sqrt(variance.sum())) < 5
    # a residual that leans is a wrong slope
    assert abs(left @ logit) < 5 * np.sqrt(variance @ logit**2)


def test_observation_shapes():
    assert observation_shape(GaussianMean(4)) == (4,)
    assert observation_shape(GaussianMixture()) == (1,)
    assert observation_shape(PLANE["linear dynamics"]()) == (1,)
    assert observation_shape(LogisticRegression(5)) == (1,)
    assert observation_shape(MiniBatch(GaussianMixture(), 7)) == (7, 1)
    assert observation_shape(MiniBatch(LogisticRegression(3), 7)) == (7, 1)


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
