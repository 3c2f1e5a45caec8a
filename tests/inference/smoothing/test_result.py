"""What a smoothed stream shows: means by weight, paths with names, the least effective sample size in its words."""

from typing import ClassVar

import numpy as np
from jax import numpy as jnp

from pfbr.inference.smoothing.backward import Clouds, SmoothedClouds
from pfbr.inference.smoothing.result import Smoothed
from pfbr.models.constraints import positive
from pfbr.models.unknowns import Unknowns


class Named:
    unknowns: ClassVar = {"level": (), "scale": positive}


def test_means_are_weighted_and_paths_are_on_the_users_scale():
    points = jnp.asarray([[[0.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [3.0, 0.0]]])
    clouds = Clouds(points, jnp.log(jnp.asarray([[0.25, 0.75], [0.5, 0.5]])))
    plain = Smoothed(SmoothedClouds(clouds, points[:, ::-1], jnp.asarray([1.6, 2.0])), "backward")
    np.testing.assert_allclose(plain.mean(), [[1.5, 0.75], [2.0, 0.0]], atol=1e-6)
    np.testing.assert_array_equal(plain.samples, points[:, ::-1])
    np.testing.assert_array_equal(plain.particles, points)
    np.testing.assert_allclose(plain.weights.sum(axis=1), 1, atol=1e-6)
    assert repr(plain) == "Smoothed(2 stages by backward, ess 2 to 2)"
    named = Smoothed(SmoothedClouds(clouds, points, jnp.asarray([1.6, 2.0])), "backward", Unknowns.of(Named()))
    np.testing.assert_allclose(named.mean()["level"], [1.5, 2.0], atol=1e-6)
    assert np.all(named.samples["scale"] > 0)
    assert named.std()["scale"].shape == (2,)
