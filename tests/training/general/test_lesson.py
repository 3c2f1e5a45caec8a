"""What a lesson says: nothing is lost where the map is exact, and a cloud that the map made is a lesson too."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.general import shipped
from pfbr.particles.particles import ess_share
from pfbr.training.general.lesson import lesson_weights, loss
from pfbr.training.problems.clouds import SHARES
from pfbr.training.problems.kinds import gaussian
from pfbr.training.problems.store import make_clouds


def test_even_weights_lose_nothing_and_uneven_ones_what_they_say():
    assert loss(jnp.full(50, -3.0)) == 0
    uneven = jnp.where(jnp.arange(50) < 10, 0.0, -20.0)
    np.testing.assert_allclose(ess_share(uneven), 0.2, rtol=1e-5)
    assert loss(uneven) > np.log(5)
    assert ess_share(jnp.full(50, jnp.nan)) == 0


def test_gaussian_problems_are_nearly_without_loss_also_from_clouds_that_the_map_made():
    keys = jax.random.split(jax.random.key(4), 6)
    one = jnp.array([0])
    clouds = make_clouds(keys, d=3, kinds=(gaussian,), chosen=one, old=one, num=128)
    normal = [i for i in range(6) if int(clouds.problem.prior.shape[i]) == 0]
    assert normal
    shares = jnp.asarray(SHARES)
    for i in normal[:2]:
        cloud = jax.tree.map(lambda leaf, i=i: leaf[i], clouds)
        for by_map in (False, True):
            weights = lesson_weights(
                shipped(), (gaussian,), cloud.problem, cloud.points, jnp.asarray(2), shares, jnp.asarray(by_map)
            )
            assert ess_share(weights) > 0.9
