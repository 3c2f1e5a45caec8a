"""A session's steps are those of the pure functions, compiled once for all sessions of one structure."""

import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from pfbr.inference import stepping
from pfbr.inference.method import Stream, record
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


class Scale(pfbr.Model):
    """A mean and a log standard deviation: rows are weighed, moved, and at last too many to be kept."""

    dim = 2

    def sample_prior(self, key):
        return 2 * jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.125 * jnp.sum(x**2)

    def log_likelihood(self, x, y):
        return jnp.sum(-0.5 * ((y - x[0]) / jnp.exp(x[1])) ** 2 - x[1])


def test_moves_compiled_apart_are_those_of_a_whole_stream():
    """130 rows with room for 128: weighed, moved, and the oldest put away, in a session and by a recorded stream."""
    rows = np.random.default_rng(0).normal(1.0, 2.0, (130, 1)).astype(np.float32)
    key, model = jax.random.key(5), Scale()
    method = pfbr.as_method("auto", model, history=128)
    whole = record(key, method, model, Stream(jnp.asarray(rows)), 32)
    session = pfbr.Session(model, method=method, num_particles=32, key=key)
    posteriors = [session.update(row) for row in rows]
    moved = [posterior.info.move for posterior in posteriors]
    assert {"weighed", "tempered"} <= set(map(str, moved))
    assert [bool(posterior.info.exact) for posterior in posteriors[-3:]] == [True, False, False]
    theirs = np.asarray(whole.info.log_predictive)
    ours = np.array([posterior.info.log_predictive for posterior in posteriors])
    # the same but for rounding, which in time turns a Metropolis step over: the first rows tell
    np.testing.assert_allclose(ours[:20], theirs[:20], atol=0.02)
    np.testing.assert_allclose(ours.sum(), theirs.sum(), atol=1.0)
