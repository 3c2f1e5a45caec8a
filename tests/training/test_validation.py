"""Exact draws score zero above exact draws; a stage that goes astray counts for three nats."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.inference.operator import Operator
from pfbr.models import GaussianMean, LogisticRegression
from pfbr.particles.particles import equally_weighted
from pfbr.training.tasks import ModelFamily
from pfbr.training.validation import MOST_ABOVE_EXACT, draw_validation_set, validate

MODEL = GaussianMean(2, observation_std=1.0)


@pytest.fixture(scope="module")
def held():
    return draw_validation_set(jax.random.key(0), ModelFamily(MODEL), 3, 8, 32)


class Lost(Operator):
    """Says NaN after every observation."""

    def update(self, key, model, state, observation):
        moved, info = super().update(key, model, state, observation)
        return equally_weighted(jnp.nan * moved.points, moved.log_density), info


def test_tasks_come_with_true_draws_and_what_they_score(held):
    assert held.tasks.observations.shape == (8, 3, 2)
    assert held.draws.shape == (8, 3, 512, 2)
    assert held.exact_score.shape == (8, 3)
    # more observations, a narrower posterior, a lower entropy
    assert np.all(np.diff(np.mean(held.exact_score, axis=0)) < 0)


def test_an_exact_operator_is_not_above_exact_draws(held):
    """Its particles are moment-matched, and so a little better: between −0.3 and 0.05 nats."""
    score = float(validate(jax.random.key(1), pfbr.gaussian_operator(solver="heun", steps=4), held))
    assert -0.3 < score < 0.05


def test_an_operator_that_is_lost_counts_for_the_most(held):
    plain = pfbr.gaussian_operator(solver="heun", steps=1)
    lost = Lost(plain.velocity, plain.settings)
    assert float(validate(jax.random.key(1), lost, held)) == pytest.approx(MOST_ABOVE_EXACT)


def test_without_a_truth_the_loss_is_the_score():
    """Three unknowns have neither formula nor grid."""
    family = ModelFamily(LogisticRegression(3))
    without = eqx.filter_eval_shape(lambda key: draw_validation_set(key, family, 2, 2, 8), jax.random.key(0))
    assert without.draws is None
    assert without.exact_score is None
