"""A session's steps are those of the pure functions, compiled once for all sessions of one structure."""

import jax
import numpy as np

import pfbr
from pfbr.inference import stepping
from pfbr.models import GaussianMean, LinearDynamics

STREAM = np.array([[0.4, -1.2], [0.9, 0.1], [-0.3, 0.8]], np.float32)


def updated(session):
    for row in STREAM:
        posterior = session.update(row)
    return posterior


def test_sessions_of_one_structure_share_what_is_compiled_and_keep_their_own_numbers():
    """Matrices of a model are its arrays; another system of the same size is another set of numbers, no more."""
    first = updated(pfbr.Session(LinearDynamics.random(0, 2), method="gaussian", num_particles=32))
    known = len(stepping._compiled)
    other = updated(pfbr.Session(LinearDynamics.random(1, 2), method="gaussian", num_particles=32))
    assert len(stepping._compiled) == known
    assert not np.allclose(first.mean(), other.mean(), atol=1e-3)


def test_old_and_new_keys_of_jax_give_the_same_particles():
    one, other = (
        updated(pfbr.Session(GaussianMean(2), method="gaussian", num_particles=32, key=key))
        for key in (jax.random.key(3), jax.random.PRNGKey(3))
    )
    np.testing.assert_array_equal(one.particles, other.particles)
