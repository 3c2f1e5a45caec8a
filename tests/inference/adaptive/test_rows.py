"""Rows look alike whatever came with them, so that one buffer holds those with and without times and gaps."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.rows import row_of
from pfbr.inference.history import empty_history
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.conditions import Conditions, bind

MOVING, STATIC, Y = LinearDynamics(np.eye(2), np.eye(2)), GaussianMean(2), jnp.ones(2)
GIVEN = (Conditions(), Conditions(dt=jnp.full((), 0.5)), Conditions(observed=jnp.array([True, False])))


def test_rows_with_and_without_times_and_gaps_look_alike():
    for model in (MOVING, STATIC):
        rows = [row_of(bind(model, given), Y) for given in GIVEN]
        assert len({jax.tree.structure(row) for row in rows}) == 1
    assert [float(row_of(bind(MOVING, given), Y).conditions.dt) for given in GIVEN] == [1.0, 0.5, 1.0]


def test_one_buffer_holds_them():
    history = empty_history(MOVING, 4)
    for given in GIVEN:
        history = history.append(bind(MOVING, given), Y)
    np.testing.assert_array_equal(history.stored.conditions.dt, [1.0, 0.5, 1.0, 0.0])
