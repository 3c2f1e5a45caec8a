"""A model that asks which components were seen, on streams from which nothing is missing."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.baselines import BootstrapSMC
from pfbr.inference.method import Stream, record
from pfbr.judging.stages import rows_of
from pfbr.models.base import StateSpaceModel


class Masked(StateSpaceModel):
    @property
    def dim(self):
        return 2

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x**2)

    def sample_transition(self, key, x):
        return 0.9 * x + 0.1 * jax.random.normal(key, (2,))

    def log_likelihood(self, x, observation, *, observed):
        return -0.5 * jnp.sum(jnp.where(observed, observation - x, 0.0) ** 2)


SEEN = jnp.ones((3, 2))


def test_its_likelihood_is_that_of_all_components():
    first = jax.tree.map(lambda leaf: leaf[0], rows_of(Stream(SEEN)))
    np.testing.assert_allclose(first.log_likelihoods(Masked(), jnp.zeros((4, 2))), -np.ones(4))


@pytest.mark.parametrize("observed", [None, jnp.ones((3, 2), bool)])
def test_rivals_take_it_with_and_without_a_mask(observed):
    said = record(jax.random.key(0), BootstrapSMC(), Masked(), Stream(SEEN, observed=observed), 16)
    assert bool(jnp.all(jnp.isfinite(said.info.log_evidence)))
