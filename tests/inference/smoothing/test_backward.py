"""Backward weights against the enumeration of all paths."""

import itertools

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.smoothing.backward import Clouds, backward
from pfbr.models import LinearDynamics
from pfbr.models.conditions import Conditions


def test_weights_are_those_of_all_paths_enumerated():
    """Three clouds of four points: the chain that goes back from the last one has 64 paths."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, 4, 1))
    weights = rng.dirichlet(np.ones(4), size=3)
    model = LinearDynamics(0.8 * np.eye(1), np.eye(1), transition_std=0.7)

    def density(t, m, n):  # from point n of stage t to point m of the next
        return np.exp(-0.5 * ((points[t + 1, m, 0] - 0.8 * points[t, n, 0]) / 0.7) ** 2)

    mass = np.zeros((3, 4))
    for path in itertools.product(range(4), repeat=3):
        p = weights[2, path[2]]
        for t in (1, 0):
            back = np.array([weights[t, n] * density(t, path[t + 1], n) for n in range(4)])
            p *= back[path[t]] / back.sum()
        for t in range(3):
            mass[t, path[t]] += p
    clouds = Clouds(jnp.asarray(points, jnp.float32), jnp.log(jnp.asarray(weights, jnp.float32)))
    found = backward(jax.random.key(0), model, clouds, Conditions())
    np.testing.assert_allclose(np.exp(found.clouds.log_weights), mass, atol=1e-5)
    np.testing.assert_allclose(found.ess, 1 / np.sum(mass**2, axis=1), rtol=1e-4)
    assert np.isin(np.asarray(found.paths), np.asarray(clouds.points)).all()
