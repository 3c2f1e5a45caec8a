"""The index of a sensor stays a whole number; a covariate that happens to be whole does not."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.inference.whole_inputs import needs_whole_inputs

OFFSETS = np.array([0.0, 5.0, -3.0], np.float32)


class Sensors(pfbr.Model):
    """A value seen by one of three sensors, each with an offset of its own."""

    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jax.scipy.stats.norm.logpdf(x[0])

    def log_likelihood(self, x, observation, *, inputs):
        return jax.scipy.stats.norm.logpdf(observation[0], x[0] + jnp.asarray(OFFSETS)[inputs], 0.5)


class Scaled(Sensors):
    """The input is a number like any other."""

    def log_likelihood(self, x, observation, *, inputs):
        return jax.scipy.stats.norm.logpdf(observation[0], x[0] * inputs, 0.5)


def test_only_a_model_that_indexes_needs_whole_numbers():
    assert needs_whole_inputs(Sensors(), np.float32(2), (1,))
    assert not needs_whole_inputs(Scaled(), np.float32(2), (1,))


@pytest.mark.parametrize("inputs", [1, np.int64(1), 1.0, np.array(1)], ids=["int", "int64", "float", "array"])
def test_a_session_takes_an_index_however_it_is_written(inputs):
    """Precisions add up: N(0, 1) and an observation of 1 with variance ¼ give a mean of 4/5."""
    session = pfbr.Session(Sensors(), method="gaussian", num_particles=64)
    posterior = session.update([6.0], inputs=inputs)
    np.testing.assert_allclose(posterior.mean(), [0.8], atol=0.02)
    with pytest.raises(InputError, match=r"1.5 where the model needs whole numbers"):
        session.update([6.0], inputs=1.5)
    assert session.stage == 1


def test_a_stream_takes_indices_too_and_a_covariate_may_become_real():
    trace = pfbr.run(Sensors(), [[6.0], [1.0]], inputs=[1, 0], method="gaussian", num_particles=64)
    np.testing.assert_allclose(trace.mean()[-1], [8 / 9], atol=0.02)
    session = pfbr.Session(Scaled(), method="gaussian", num_particles=64)
    session.update([1.0], inputs=1)
    posterior = session.update([1.5], inputs=1.5)
    np.testing.assert_allclose(posterior.mean(), [(4 + 9) / (1 + 4 + 9)], atol=0.02)
