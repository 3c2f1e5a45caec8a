"""Draws that come from a density pass, others are refused, and what differs is named. Every seed is fixed; the chance
of refusing one right law is 5e-4."""

import math

import numpy as np
import pytest

from pfbr.judging.model_check.bridge_test import agreement

DRAWS = 8192


def normal(x, mean=0.0, std=1.0):
    return (-0.5 * ((x - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(-1)


def asked(draws: np.ndarray, log_density, seed: int = 0):
    labels = [f"x[{i}]" for i in range(draws.shape[-1])]
    return agreement(draws.astype(np.float32), log_density, labels, seed=seed)


def poisson(x, rate=300.0):
    factorials = np.vectorize(math.lgamma)(x.astype(float) + 1)
    return (x * np.log(rate) - rate - factorials).sum(-1)


def cauchy(x):
    return (-np.log(np.pi) - np.log1p(x.astype(float) ** 2)).sum(-1)


def uniform(x):
    return np.where(((x >= 0) & (x <= 1)).all(-1), 0.0, -np.inf)


def bernoulli(x, chance=0.3):
    return (x * np.log(chance) + (1 - x) * np.log(1 - chance)).sum(-1)


def two_modes(x):
    return np.logaddexp(normal(x, -4.0), normal(x, 4.0)) - np.log(2)


FACTOR = np.linalg.cholesky(0.9 * np.ones((10, 10)) + 0.1 * np.eye(10))


def correlated(x):
    return normal(x @ np.linalg.inv(FACTOR).T) - np.log(np.diagonal(FACTOR)).sum()


@pytest.mark.parametrize(
    ("draw", "log_density"),
    [
        (lambda rng, size: rng.normal(size=(*size, 1)), normal),
        (lambda rng, size: rng.normal(size=(*size, 10)), normal),
        (lambda rng, size: rng.normal(size=(*size, 10)) @ FACTOR.T, correlated),
        (lambda rng, size: rng.standard_cauchy(size=(*size, 3)), cauchy),
        (lambda rng, size: rng.random(size=(*size, 3)), uniform),
        (lambda rng, size: (rng.random(size=(*size, 2)) < 0.3).astype(float), bernoulli),
        (lambda rng, size: rng.poisson(300.0, size=(*size, 1)).astype(float), poisson),
        (lambda rng, size: rng.normal(size=(*size, 1)) + 4 * np.sign(rng.random((*size, 1)) - 0.5), two_modes),
    ],
)
def test_right_laws_pass(draw, log_density):
    for cases, num in ((1, DRAWS), (4, DRAWS // 4)):
        found = asked(draw(np.random.default_rng(1), (cases, num)), log_density)
        assert not found.refused, found
        assert found.overlap > 0.4


def test_false_alarms_are_as_rare_as_is_said():
    """Of 300 right laws 0.15 are refused on average; three or more with a chance of 1e-3."""
    rng = np.random.default_rng(0)
    refused = sum(asked(rng.normal(size=(1, 1024, 2)), normal, seed).refused for seed in range(300))
    assert refused < 3


@pytest.mark.parametrize("dim", [1, 2, 5, 10])
@pytest.mark.parametrize("factor", [1.2, 1 / 1.2])
def test_one_standard_deviation_that_is_wrong_by_a_fifth_is_seen(dim, factor):
    scale = np.append(np.ones(dim - 1), factor)
    for seed in range(5):
        found = asked(np.random.default_rng(seed).normal(size=(1, DRAWS, dim)) * scale, normal, seed)
        assert found.shape
        assert f"x[{dim - 1}]: the draws have mean" in found.difference


def test_a_difference_in_one_case_of_several_is_seen_and_so_is_one_that_cancels():
    drawn = np.random.default_rng(0).normal(size=(8, 4096, 1))
    drawn[3] *= 1.3
    assert asked(drawn, normal).shape
    drawn = np.random.default_rng(0).normal(size=(8, 4096, 1)) + 0.4 * (-1.0) ** np.arange(8)[:, None, None]
    assert asked(drawn, normal).shape


def test_correlations_are_named():
    drawn = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=(1, DRAWS))
    assert asked(drawn, normal).difference.startswith("x[0] and x[1]: the draws have correlation 0.49")


def test_a_missing_constant_is_told_from_a_wrong_shape():
    found = asked(np.random.default_rng(0).normal(size=(1, DRAWS, 2)), lambda x: normal(x) + np.log(2 * np.pi))
    assert found.refused
    assert not found.shape
    assert np.exp(found.log_integrals) == pytest.approx(2 * np.pi, rel=0.1)


def test_a_mode_that_is_never_drawn_leaves_half_of_the_integral():
    found = asked(np.random.default_rng(0).normal(size=(1, DRAWS, 1)) + 4, two_modes)
    assert np.exp(found.log_integrals) == pytest.approx(0.5, rel=0.1)


def test_the_frequencies_of_discrete_values_are_compared():
    drawn = (np.random.default_rng(0).random(size=(1, DRAWS, 1)) < 0.36).astype(float)
    assert asked(drawn, bernoulli).refused
    assert asked(np.random.default_rng(0).poisson(310.0, size=(1, DRAWS, 1)).astype(float), poisson).refused
