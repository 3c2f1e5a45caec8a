"""Tasks that begin late begin with the posterior of what came before."""

import jax
import numpy as np

from pfbr.models import GaussianMean
from pfbr.paper.late_starts import LateStarts


def test_late_starts_are_posteriors_of_earlier_observations():
    """Mean and unknown of late tasks: E m² + E v = 1, and x − m has variance v, each within z = 5."""
    family = LateStarts(GaussianMean(1, prior_std=1.0, observation_std=3.0), 90)
    tasks = jax.jit(jax.vmap(lambda key: family.sample(key, 2)))(jax.random.split(jax.random.key(1), 4000))
    mean, std, x = (np.asarray(a) for a in (tasks.model.mean[:, 0], tasks.model.prior_std, tasks.truths[:, 0, 0]))
    seen = 9.0 * (1.0 / std**2 - 1.0)
    assert np.abs(seen - np.round(seen)).max() < 0.02  # a whole number of observations
    assert (np.round(seen).min(), np.round(seen).max()) == (0, 90)
    for values in (mean**2 + std**2 - 1.0, ((x - mean) / std) ** 2 - 1.0):
        assert abs(values.mean()) < 5 * values.std() / 4000**0.5
    # late models know their own truth
    late = jax.jit(jax.vmap(lambda model: model.linear_gaussian()))(tasks.model)
    np.testing.assert_allclose(late.mean[:, 0], mean)
    np.testing.assert_allclose(late.cov[:, 0, 0], std**2, rtol=1e-6)
