"""A row that leaves hardly a particle is let in by shares: the posterior and the evidence are those of the integral."""

import jax
import numpy as np
from jax import numpy as jnp

from pfbr.inference.adaptive.static.kernels import initial_tuning
from pfbr.inference.adaptive.static.past import empty_past
from pfbr.inference.adaptive.static.state import StaticSettings
from pfbr.inference.adaptive.static.surrogate import no_surrogate
from pfbr.inference.adaptive.static.target import evaluate
from pfbr.inference.adaptive.static.tempering import Tempering, temper
from tests.inference.adaptive.static.problems import kalman, linear_gaussian

ROW = jnp.array([1.0, -1.0, 6.0])  # four prior standard deviations of its combination away, noise a sixth of that
N = 128


def tempered(key):
    target = linear_gaussian(prior_std=1.0, noise_std=0.1)
    points = jax.random.normal(jax.random.fold_in(key, 1), (N, 2))
    past = empty_past(ROW, 1)
    at = lambda p: evaluate(target, p, jnp.zeros(2), no_surrogate(2, p.dtype), past, ROW)
    zero, count = jnp.zeros(()), jnp.zeros((), jnp.int32)
    begin = Tempering(
        key=key,
        t=zero,
        points=points,
        evaluation=at(points),
        log_weights=jnp.full(N, -jnp.log(N)),
        log_ratio=zero,
        tuning=initial_tuning(2, points.dtype),
        finished=jnp.asarray(False),
        rounds=count,
        stages=count,
        moves=count,
        acceptance=zero,
        variance=zero,
        log_variance=zero,
        arrived=jnp.mean(points, axis=0),
        outside=zero,
    )
    return temper(at, begin, count, StaticSettings(early_moves=8))


def test_mean_covariance_and_evidence_over_runs():
    """Against the formula, z < 5 over 32 runs; a single run's evidence within a nat."""
    end = jax.jit(jax.vmap(tempered))(jax.random.split(jax.random.key(0), 32))
    mean, cov, evidence = kalman([ROW], 1.0, 0.1)[-1]
    means = np.asarray(jnp.mean(end.points, axis=1), float)
    error = means.std(0, ddof=1) / np.sqrt(32)
    assert np.all(np.abs(means.mean(0) - mean) < 5 * error)
    spread = np.mean([np.diag(np.cov(np.asarray(p).T)) for p in end.points], axis=0)
    np.testing.assert_allclose(spread, np.diag(cov), rtol=0.15)
    np.testing.assert_allclose(np.mean(end.log_ratio), evidence, atol=0.3)
    assert np.max(np.abs(end.log_ratio - evidence)) < 1.5
    assert np.all(end.stages > 2)
    assert np.all(end.t == 1)
    assert np.all(end.log_variance < 0.5)
