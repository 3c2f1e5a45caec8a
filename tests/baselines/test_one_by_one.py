"""A batch given one member at a time is the batch."""

import jax
import numpy as np

from pfbr.baselines import OnePassSMC
from pfbr.baselines.one_by_one import OneByOne
from pfbr.inference.method import record, step_key
from pfbr.models import GaussianMean, MiniBatch

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
