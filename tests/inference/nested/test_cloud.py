"""Copies of one origin count once; what the prior says is on the parameters' own shape."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.cloud import OuterCloud, fresh_seeds, log_start
from pfbr.inference.nested.inner import Clouds, InnerFilters
from pfbr.inference.nested.kept import no_rows
from tests.inference.nested.local_level import LocalLevel
from tests.inference.nested.test_kept import MODEL


def test_copies_count_once():
    filters = Clouds(jnp.zeros((4, 2, 1)), jnp.full((4, 2), -jnp.log(2.0)))
    even = jnp.full(4, -jnp.log(4.0))
    seeds = fresh_seeds(jax.random.key(0), 4)
    cloud = OuterCloud(jnp.zeros((4, 1)), seeds, filters, even, jnp.zeros(4), jnp.asarray([0, 0, 7, 7]))
    np.testing.assert_allclose(cloud.independent, 2.0, rtol=1e-6)


def test_before_any_row_parameters_have_their_prior():
    start = log_start(InnerFilters(LocalLevel(), (1,), 2), no_rows(MODEL, 2, 1), jnp.asarray([[-1.0], [1.0]]))
    np.testing.assert_allclose(start, [-0.9189385, -2.9189385], rtol=1e-5)
