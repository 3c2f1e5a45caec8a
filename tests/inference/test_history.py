"""The rows so far: sums over them are sums over the rows that came, under the conditions that came with each."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.inference.history import check_capacity, empty_history
from pfbr.models import GaussianMean, LogisticRegression
from pfbr.models.conditions import Conditions, bind

MODEL = GaussianMean(2, observation_std=0.5)
ROWS = np.array([[0.3, -0.2], [1.0, 0.5], [-0.7, 0.1]], np.float32)


@pytest.fixture
def history():
    kept = empty_history(bind(MODEL, Conditions()), 4)
    for row in ROWS:
        kept = kept.append(bind(MODEL, Conditions()), jnp.asarray(row))
    return kept


def test_it_sums_values_and_scores_over_the_rows_that_came(history):
    x = jnp.array([0.3, 0.4])
    whole = lambda x: sum(MODEL.log_likelihood(x, jnp.asarray(row)).sum() for row in ROWS)
    np.testing.assert_allclose(history.log_likelihood(MODEL, x), whole(x), rtol=1e-5)
    np.testing.assert_allclose(history.score(MODEL, x), jax.grad(whole)(x), rtol=1e-5)


def test_a_row_is_found_and_taken_out(history):
    assert history.holds(jnp.asarray(ROWS[1]))
    left = history.without(jnp.asarray(ROWS[1]))
    assert not left.holds(jnp.asarray(ROWS[1]))
    assert int(left.count) == 2
    np.testing.assert_array_equal(left.stored.observations[:2], ROWS[[0, 2]])


def test_what_is_beyond_the_count_is_not_a_row(history):
    assert not history.holds(jnp.zeros(2))


def test_batches_are_drawn_from_the_rows_that_came(history):
    rows, factor = history.batch(jax.random.key(0), 64)
    assert {tuple(row) for row in np.asarray(rows.observations)} == {tuple(row) for row in ROWS}
    assert float(factor) == pytest.approx(3 / 64)


def test_inputs_stay_with_their_rows():
    model, x = LogisticRegression(2), jnp.array([0.5, -1.0])
    covariates = jnp.array([[1.0, 2.0], [-1.0, 0.5]])
    kept = empty_history(bind(model, Conditions(inputs=covariates[0])), 3)
    for z, y in zip(covariates, (1.0, 0.0), strict=True):
        kept = kept.append(bind(model, Conditions(inputs=z)), jnp.full((1,), y))
    probability = jax.nn.sigmoid(covariates @ x)
    expected = jnp.log(probability[0]) + jnp.log1p(-probability[1])
    np.testing.assert_allclose(kept.log_likelihood(bind(model, Conditions(inputs=z)), x), expected, rtol=1e-5)


def test_a_buffer_that_is_full_says_so(history):
    full = history.append(bind(MODEL, Conditions()), jnp.zeros(2))
    with pytest.raises(Exception, match="larger `history`"):
        jax.block_until_ready(full.append(bind(MODEL, Conditions()), jnp.zeros(2)).count)
    with pytest.raises(InputError, match="at least 1"):
        check_capacity(0)
