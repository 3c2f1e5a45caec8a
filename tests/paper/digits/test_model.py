"""Covariates inside the observation or beside it: the same law."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.models import LogisticRegression
from pfbr.models.needs import all_needs
from pfbr.paper.digits.model import LabelledRows


def test_labelled_rows_are_logistic_regression():
    key, x = jax.random.key(0), jnp.array([0.5, -1.0, 2.0])
    rows, beside = LabelledRows(3), LogisticRegression(3)
    assert not all_needs(rows)
    row = rows.sample_observation(key, x)
    assert row.shape == (4,)
    assert float(row[-1]) in (0.0, 1.0)
    expected = beside.log_likelihood(x, row[-1:], inputs=row[:-1])
    assert np.isclose(rows.log_likelihood(x, row), expected)
    probability = 1 / (1 + np.exp(-float(row[:-1] @ x)))
    assert np.isclose(np.exp(expected), probability if row[-1] else 1 - probability)
