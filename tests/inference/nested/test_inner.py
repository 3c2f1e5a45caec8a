"""A filter's likelihood is exact on average, and a function of parameters and seed."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.nested.cloud import fresh_seeds
from pfbr.inference.nested.inner import InnerFilters, unravel
from pfbr.inference.nested.stand_in import no_stand_in
from pfbr.models.conditions import Conditions
from tests.inference.nested.local_level import STREAM, LocalLevel, evidence


def test_the_mean_of_many_likelihoods_is_kalmans():
    """Three rows, eight particles, 4,096 seeds: to five standard errors, of one percent each."""
    filters = InnerFilters(LocalLevel(), (1,), 8)
    seeds = fresh_seeds(jax.random.key(0), 4096)
    thetas = jnp.full((4096, 1), -0.5)

    @jax.jit
    def run(thetas, seeds):
        clouds, total = filters.begin(thetas, seeds, no_stand_in(1, 1)), 0.0
        for number, y in enumerate(STREAM[:3], start=1):
            row = jnp.asarray([y], jnp.float32)
            clouds, gained = filters.step(thetas, seeds, clouds, jnp.asarray(number), row, Conditions())
            total = total + gained
        return total, clouds

    total, clouds = run(thetas, seeds)
    ratio = np.exp(np.asarray(total, float) - float(evidence(-0.5, STREAM[:3])[-1]))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / 64
    np.testing.assert_allclose(np.exp(clouds.log_weights).sum(axis=1), 1, atol=1e-5)
    again, _ = run(thetas, seeds)
    np.testing.assert_array_equal(total, again)


def test_parameters_come_back_in_the_models_shape():
    assert unravel(LocalLevel())(jnp.asarray([0.5])) == {"log_step": 0.5}
