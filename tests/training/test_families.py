"""Kinds to train on and kinds to test on are apart, and each draws from the density that it states."""

import equinox as eqx
import jax
import numpy as np
import pytest
import scipy.stats
from jax import numpy as jnp

from pfbr.training.families import (
    TESTING,
    TRAINING,
    Banana,
    PoissonRegression,
    RangeOnly,
    Waves,
    student_log_density,
)


def test_families_to_train_on_and_to_test_on_are_apart():
    assert not set(TRAINING) & set(TESTING)

    def kinds(families):
        return {type(eqx.filter_eval_shape(f.sample, jax.random.key(0), 1).model) for f in families.values()}

    assert not kinds(TRAINING) & kinds(TESTING)


@pytest.mark.parametrize("name", [*TRAINING, *TESTING])
def test_every_family_draws_tasks_of_the_asked_length(name):
    family = {**TRAINING, **TESTING}[name]
    task = eqx.filter_eval_shape(family.sample, jax.random.key(0), 4)
    assert task.observations.shape[0] == task.truths.shape[0] == 4
    assert task.truths.shape[1] == task.model.dim == 2


def test_likelihoods_are_scipys():
    x = jnp.array([0.4, -1.1])
    beacon, direction = np.array([1.0, 0.5]), np.array([0.3, -0.7])

    @jax.jit
    def values():
        return jnp.stack(
            [
                RangeOnly().log_likelihood(x, jnp.array([2.0, *beacon])),
                Banana().log_likelihood(x, jnp.array([1.5])),
                PoissonRegression().log_likelihood(x, jnp.array([3.0, *direction])),
                student_log_density(jnp.asarray(1.3), jnp.asarray(4.0)),
            ]
        )

    point = np.asarray(x, np.float64)
    expected = [
        scipy.stats.norm.logpdf(2.0, np.linalg.norm(point - beacon), 0.3),
        scipy.stats.norm.logpdf(1.5, point[0] + point[1] ** 2, 0.7),
        scipy.stats.poisson.logpmf(3, np.exp(direction @ point)),
        scipy.stats.t.logpdf(1.3, 4.0),
    ]
    np.testing.assert_allclose(values(), expected, rtol=1e-4)


@pytest.mark.slow
def test_observations_of_a_wave_follow_its_likelihood():
    """At the truth the probability integral transform of a continuous observation is uniform: z = 5 over 400 tasks."""

    def one(key):
        task = Waves().sample(key, 1)
        model, observation, x = task.model, task.observations[0], task.truths[0]
        z = (observation[0] - model.curve(observation[1:], x)) / model.noise_std
        return z, model.freedom, model.binary, observation[0]

    z, freedom, binary, value = (
        np.asarray(a) for a in jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 400))
    )
    assert set(np.unique(value[binary > 0])) <= {0.0, 1.0}
    assert abs(binary.mean() - 0.15) < 5 * np.sqrt(0.15 * 0.85 / 400)
    uniform = scipy.stats.t.cdf(z[binary == 0], freedom[binary == 0])
    assert scipy.stats.kstest(uniform, "uniform").pvalue > 1e-5
