"""A batch given one member at a time is the batch."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.baselines import OnePassSMC
from pfbr.baselines.one_by_one import OneByOne
from pfbr.inference.method import Stream, record, step_key
from pfbr.models import GaussianMean, LogisticRegression, MiniBatch

KEY = jax.random.key(0)


def test_one_by_one_is_the_method_on_the_members_in_turn():
    """A method that only weighs has no use for the order: the weights are the likelihoods of all members."""
    single, batched = GaussianMean(2), MiniBatch(GaussianMean(2), 3)
    method = OneByOne(OnePassSMC(threshold=0.0))
    observations = jax.random.normal(KEY, (1, 3, 2))
    said = record(KEY, method, batched, observations, 8).particles
    points = method.init(step_key(KEY, 0), batched, 8).points
    assert np.array_equal(said.points[0], points)
    each = jax.vmap(batched.log_likelihood, (0, None))(points, observations[0])
    assert np.allclose(said.log_weights[0], jax.nn.log_softmax(each), atol=1e-4)
    assert "no batches" in method.unsupported(single)
    assert method.unsupported(batched) is None


def test_inputs_of_a_batch_go_to_its_members():
    single, batched = LogisticRegression(2), MiniBatch(LogisticRegression(2), 3)
    method = OneByOne(OnePassSMC(threshold=0.0))
    labels, inputs = jnp.array([[[1.0], [0.0], [1.0]]]), jax.random.normal(KEY, (1, 3, 2))
    said = record(KEY, method, batched, Stream(labels, inputs=inputs), 8).particles

    @jax.jit
    def expected(points):
        one = lambda x: sum(single.log_likelihood(x, labels[0, i], inputs=inputs[0, i]) for i in range(3))
        return jax.nn.log_softmax(jax.vmap(one)(points))

    assert np.allclose(said.log_weights[0], expected(said.points[0]), atol=1e-4)
