"""A task is a stream with what came with it, row by row."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.models import GaussianMean, LinearDynamics, LogisticRegression
from pfbr.models.conditions import conditions_of
from pfbr.training.tasks import ModelFamily, Task


@pytest.fixture(scope="module")
def logistic():
    return jax.jit(lambda key: ModelFamily(LogisticRegression(2)).sample(key, 4))(jax.random.key(0))


def test_rows_come_with_their_inputs(logistic):
    rows = logistic.rows
    np.testing.assert_array_equal(rows.number, [1, 2, 3, 4])
    np.testing.assert_array_equal(rows.inputs, logistic.inputs)
    row = jax.tree.map(lambda leaf: leaf[2], rows)
    bound, likelihood = row.likelihood(logistic.model)
    np.testing.assert_array_equal(conditions_of(bound).inputs, logistic.inputs[2])
    np.testing.assert_array_equal(likelihood.observation, logistic.observations[2])
    np.testing.assert_array_equal(conditions_of(logistic.first_model).inputs, logistic.inputs[0])
    np.testing.assert_array_equal(logistic.stream.inputs, logistic.inputs)


def test_times_are_sums_of_elapsed_ones():
    model = LinearDynamics.random(0, 2)
    task = Task(model, jnp.zeros((3, 2)), jnp.zeros((3, 2)), jnp.array([0.5, 0.0, 2.0]))
    np.testing.assert_allclose(task.rows.time, [0.5, 0.5, 2.5])
    row = jax.tree.map(lambda leaf: leaf[1], task.rows)
    assert float(conditions_of(row.bound(model)).dt) == 0.0


def test_a_family_may_hold_the_unknown_fixed():
    at = jnp.array([3.0, -3.0])
    task = jax.jit(lambda key: ModelFamily(GaussianMean(2, observation_std=0.1), at=at).sample(key, 5))(
        jax.random.key(1)
    )
    np.testing.assert_array_equal(task.truths, np.broadcast_to(at, (5, 2)))
    assert np.all(np.abs(task.observations - task.truths) < 0.6)  # z = 6
