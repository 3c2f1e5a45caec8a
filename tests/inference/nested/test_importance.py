"""From the prior's cloud to the posterior by importance sampling, against the grid."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.nested.cloud import OuterCloud, fresh_seeds
from pfbr.inference.nested.importance import renewed
from pfbr.inference.nested.inner import InnerFilters
from pfbr.inference.nested.kept import no_rows
from pfbr.inference.nested.metropolis import moved
from tests.inference.nested.local_level import STREAM, LocalLevel, exact
from tests.inference.nested.test_kept import MODEL

FILTERS = InnerFilters(LocalLevel(), (1,), 16)


@pytest.fixture(scope="module")
def start():
    """Parameters of the prior, weighed by twelve rows that are kept."""
    kept = no_rows(MODEL, 12, 1)
    for y in STREAM[:12]:
        kept = kept.append(MODEL, jnp.asarray([y], jnp.float32), jnp.asarray(0.0))
    thetas = -1.0 + jax.random.normal(jax.random.key(0), (128, 1))
    seeds = fresh_seeds(jax.random.key(1), 128)
    clouds, log_past = jax.jit(lambda: kept.replayed(FILTERS, thetas, seeds))()
    log_weights = jax.nn.log_softmax(log_past)
    return kept, OuterCloud(thetas, seeds, clouds, log_weights, log_past, jnp.arange(128, dtype=jnp.int32))


def test_the_mean_weight_is_the_evidence(start):
    mean, std, log_evidence = exact(STREAM[:12])
    found = jax.jit(lambda: renewed(jax.random.key(2), FILTERS, *start))()
    weights = np.exp(found.cloud.log_weights)
    assert abs(float(found.log_mean) - log_evidence) < 0.15
    assert abs(weights @ np.asarray(found.cloud.thetas)[:, 0] - mean) < 0.3 * std
    assert found.rounds == 1
    assert found.cloud.independent > 40


def test_metropolis_moves_leave_the_law_as_it_is(start):
    mean, std, _ = exact(STREAM[:12])
    cloud, accepted = jax.jit(lambda: moved(jax.random.key(3), FILTERS, *start))()
    thetas = np.asarray(cloud.thetas)[:, 0]
    assert abs(thetas.mean() - mean) < 0.4 * std
    assert 0.7 < thetas.std() / std < 1.3
    assert accepted > 0.3
    assert cloud.independent > 40
    np.testing.assert_allclose(np.exp(cloud.log_weights), 1 / 128, rtol=1e-5)
