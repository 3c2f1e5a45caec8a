"""Every metric ranks exact draws above shifted ones above the untouched prior; all of them in one compiled run."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.metrics.c2st import c2st
from pfbr.metrics.integral_discrepancy import integral_discrepancy, random_functions
from pfbr.metrics.mmd import KERNELS, mmd2
from pfbr.metrics.scores import coverage, cross_entropy_estimate, sliced_wasserstein
from pfbr.metrics.truth import GaussianTruth
from pfbr.particles.particles import equally_weighted

N, M, DIM = 128, 400, 3


def gaussian():
    return GaussianTruth(jnp.array([0.5, -0.3, 0.8]), 0.1 * jnp.eye(DIM) + 0.02, jnp.zeros(()))


def averaged_integral(particles, name):
    """Over 32 random functions: a single one may be blind in the direction of the shift."""

    def one(key):
        return integral_discrepancy(particles, random_functions(key, DIM)[name], gaussian())

    return jax.tree.map(jnp.mean, jax.vmap(one)(jax.random.split(jax.random.key(8), 32)))


FUNCTIONS = ("x", "xAx", "(Ax+a)(Bx+b)")
METRICS = {
    "cross entropy": lambda key, p, draws: cross_entropy_estimate(p, draws),
    "sliced wasserstein": sliced_wasserstein,
    "c2st": c2st,
    "coverage miss": lambda key, p, draws: coverage(p, draws, 0.9)._replace(
        value=jnp.abs(coverage(p, draws, 0.9).value - 0.9)
    ),
    **{f"mmd {name}": lambda key, p, draws, name=name: mmd2(p, draws, name) for name in KERNELS},
    **{f"integral {name}": lambda key, p, draws, name=name: averaged_integral(p, name) for name in FUNCTIONS},
}


@pytest.fixture(scope="module")
def scores():
    """Every metric on 16 particle sets of each kind: name -> (values, errors), each (3 kinds, 16)."""
    keys = jax.random.split(jax.random.key(0), 16)

    def one(key):
        exact_key, prior_key, truth_key, metric_key = jax.random.split(key, 4)
        truth = gaussian()
        exact = truth.sample(exact_key, N)
        shift = 0.15 * jnp.ones(DIM)  # about half a posterior standard deviation
        prior = jax.random.normal(prior_key, (N, DIM))
        draws = truth.sample(truth_key, M)
        kinds = jax.vmap(equally_weighted)(jnp.stack([exact, exact + shift, prior]))
        return {
            name: jax.vmap(lambda p, metric=metric: metric(metric_key, p, draws))(kinds)
            for name, metric in METRICS.items()
        }

    return jax.jit(jax.vmap(one))(keys)


@pytest.mark.parametrize("name", METRICS)
def test_exact_beats_shifted_beats_never_learning(name, scores):
    values = np.asarray(scores[name][0]).mean(axis=0)
    assert values[0] < values[1] < values[2]


def test_mmd_of_exact_draws_is_zero_within_its_error(scores):
    """z = 5 over 16 independent runs; a biased statistic would sit at about 1/n, far outside."""
    for name in KERNELS:
        values = np.asarray(scores[f"mmd {name}"][0])[:, 0]
        assert abs(values.mean()) < 5 * values.std(ddof=1) / 4


def test_classifier_cannot_tell_one_law_but_tells_two(scores):
    """Nearest neighbours left out once lean slightly under one half; distant samples are told apart."""
    values = np.asarray(scores["c2st"][0])
    assert abs(values[:, 0].mean() - 0.5) < 0.03
    assert values[:, 2].mean() > 0.7
