"""A live step is the functional core's; one that weighing settles compiles nothing more."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import LikelihoodError
from pfbr.inference import stepping
from pfbr.inference.method import Given, advance, step_key
from pfbr.inference.rows import Row
from tests.inference.test_forecast import SYSTEM
from tests.inference.test_replay import Checked, Refusing


def test_a_step_has_the_key_of_its_number():
    key, method, row = jax.random.key(3), pfbr.as_method("smc", SYSTEM), Row(np.ones(2, np.float32))
    state = pfbr.init(key, method, SYSTEM, num_particles=32)
    after, info = stepping.stepped(key, 4, method, SYSTEM, state, row, "it")
    expected, said = advance(step_key(key, 4), method, SYSTEM, state, jnp.ones(2), Given())
    np.testing.assert_allclose(after.own.points, expected.own.points, atol=1e-5)
    np.testing.assert_allclose(info.log_predictive, said.log_predictive, rtol=1e-5)


def test_a_step_without_a_posterior_is_named():
    model, method, row = Refusing(), Checked(), Row(np.array([60.0], np.float32), None, np.float32(1), np.float32(0))
    given = row.conditions(model)
    state = stepping.start_compiled(jax.random.key(0), method, model, 32, given, (1,))
    with pytest.raises(LikelihoodError, match="the ninth one"):
        stepping.stepped(jax.random.key(0), 1, method, model, state, row, "the ninth one")
