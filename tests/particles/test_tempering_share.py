"""The share of a likelihood is the largest that leaves enough particles, from all of it down to next to nothing."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.particles.particles import ess
from pfbr.particles.tempering_share import tempering_share

EQUAL = jnp.full(8, -jnp.log(8.0))
share_of = jax.jit(lambda weights, values, left, least: tempering_share(weights, values, left, least, shortest=1e-10))


@pytest.mark.parametrize("sharpness", [10.0, 1e3, 1e8], ids=["mild", "sharp", "very sharp"])
def test_the_share_leaves_the_wanted_ess(sharpness):
    values = -sharpness * jnp.linspace(0.0, 1.0, 8) ** 2
    share = share_of(EQUAL, values, jnp.asarray(1.0), 4.0)
    assert float(ess(EQUAL + share * values)) == pytest.approx(4.0, rel=1e-3)


def test_two_particles_have_a_closed_form(x64):
    """Weights 1 and exp(−s): ESS = (1 + e)² / (1 + e²) is 1.6 at e = 1/3, so that s = log 3 / 7 of a gap of 7."""
    equal = jnp.full(2, -jnp.log(2.0))
    share = tempering_share(equal, jnp.array([0.0, -7.0]), jnp.asarray(1.0), 1.6, shortest=1e-10)
    np.testing.assert_allclose(share, np.log(3.0) / 7, rtol=1e-5)


def test_all_that_is_left_is_taken_where_it_does_no_harm():
    assert float(share_of(EQUAL, -0.01 * jnp.arange(8.0), jnp.asarray(0.7), 4.0)) == pytest.approx(0.7)


@pytest.mark.parametrize("ruled_out", [-jnp.inf, jnp.nan, jnp.inf])
def test_what_is_ruled_out_counts_for_nothing(ruled_out):
    values = jnp.where(jnp.arange(8) < 3, 0.0, ruled_out)
    assert float(share_of(EQUAL, values, jnp.asarray(1.0), 3.0)) == 1.0


def test_never_nothing_so_that_tempering_ends():
    values = jnp.where(jnp.arange(8) < 1, 0.0, -jnp.inf)
    share = tempering_share(EQUAL, values, jnp.asarray(1.0), 4.0, shortest=1e-3)
    assert float(share) == pytest.approx(1e-3)
