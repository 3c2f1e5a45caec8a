"""The continuity equation as a loss: zero for the exact velocity, one (in share) for a velocity that does nothing."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError
from pfbr.flow.velocities import AffineVelocity
from pfbr.models import GaussianMean, GaussianMixture
from pfbr.training.families import TESTING
from pfbr.training.objectives.continuity import ContinuityObjective, sample_between
from pfbr.training.tasks import ModelFamily


class Still(AffineVelocity):
    """Moves nothing."""

    def __call__(self, t, points, support, context, likelihood):
        return jnp.zeros_like(points), jnp.zeros(points.shape[0])


def shares(velocities, family, num=32):
    """E r² / Var ℓ of each velocity on the same `num` problems of a family, in one compilation."""
    operators = [eqx.tree_at(lambda o: o.velocity, pfbr.gaussian_operator(), velocity) for velocity in velocities]
    draw = ContinuityObjective(family, pfbr.TrainingSettings(steps=1, length=6, num_particles=512))
    losses = jax.jit(lambda keys: jax.lax.map(lambda key: [draw.loss(key, o) for o in operators], keys))
    return [np.expm1(np.asarray(each)) for each in losses(jax.random.split(jax.random.key(0), num))]


@pytest.fixture(scope="module")
def on_a_gaussian():
    return shares([AffineVelocity(), Still()], ModelFamily(GaussianMean(2, observation_std=1.0)))


def test_the_training_free_velocity_solves_the_equation_on_a_gaussian(on_a_gaussian):
    # the equation holds for the true moments; 512 draws know them to about 512^-1/2
    assert np.median(on_a_gaussian[0]) < 0.03


def test_a_velocity_that_does_nothing_has_the_whole_variance_left(on_a_gaussian):
    assert np.allclose(on_a_gaussian[1], 1.0, atol=0.05)


def test_the_training_free_velocity_does_not_solve_it_on_two_modes():
    (gaussian,) = shares([AffineVelocity()], TESTING["mixture"])
    assert np.mean(gaussian) > 0.1


def test_draws_between_prior_and_posterior_have_the_density_they_should():
    """For a Gaussian the tempered posterior is known: precision 1 + (stage + t) / σ²."""
    task = ModelFamily(GaussianMean(2, observation_std=1.0)).sample(jax.random.key(1), 4)
    points, scores = jax.jit(lambda k: sample_between(k, task, 2, 0.5, 20_000))(jax.random.key(2))
    precision = 1.0 + 2.5
    mean = (task.observations[:2].sum(axis=0) + 0.5 * task.observations[2]) / precision
    # standard error of a mean of 20,000 draws is 0.004; five of them, and the grid's cell
    assert np.allclose(points.mean(axis=0), mean, atol=0.03)
    assert np.allclose(np.cov(points.T), np.eye(2) / precision, atol=0.02)
    assert np.allclose(scores, -precision * (points - mean), atol=1e-3)


@pytest.mark.slow
def test_a_few_steps_lower_the_share_on_problems_not_seen():
    settings = pfbr.TrainingSettings(steps=60, batch=16, length=6, validate_every=60, validation_tasks=2)
    operator, _ = pfbr.fit(GaussianMixture(), settings=settings, progress=False)
    assert operator.provenance.document["objective"] == "continuity"
    before, after = shares([AffineVelocity(), operator.velocity], TESTING["mixture"])
    assert after.mean() < 0.8 * before.mean()


def test_it_is_refused_where_posteriors_cannot_be_sampled():
    settings = pfbr.TrainingSettings(steps=1)
    with pytest.raises(InputError, match="dim 2 and no dynamics"):
        pfbr.fit(GaussianMean(3), settings=settings, objective="continuity")
    with pytest.raises(InputError, match="residual operator"):
        pfbr.fit(GaussianMean(2), operator="paper", settings=settings, objective="continuity")
