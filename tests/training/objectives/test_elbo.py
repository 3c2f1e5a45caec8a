"""At the exact posterior the loss is minus the log evidence at every particle; anything else is worse."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.operator import Operator
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.particles.particles import equally_weighted
from pfbr.particles.qmc import match_moments
from pfbr.training.objectives.elbo import stage_losses
from pfbr.training.tasks import ModelFamily
from tests.weights import operator_of

MODEL = GaussianMean(2, observation_std=1.5)
KEY = jax.random.key(1)
losses_of = eqx.filter_jit(stage_losses)


def evidence(model, observations):
    return np.asarray(jax.jit(lambda o: kalman(model, o))(observations).log_evidence)


@pytest.fixture(scope="module")
def task():
    return jax.jit(lambda key: ModelFamily(MODEL).sample(key, 6))(jax.random.key(0))


@pytest.fixture(scope="module")
def exact_losses(task):
    return losses_of(KEY, pfbr.gaussian_operator(), task, 7)


def test_every_particle_tells_the_evidence(x64):
    """log q(x) − log p(x, o) is one number, whatever the particle: −log p(o). Nine digits but for the frame's ridge."""
    observation = jnp.asarray([1.0, -2.0])

    @jax.jit
    def difference(noise):
        points = match_moments(noise)
        prior = equally_weighted(points, jax.vmap(MODEL.log_prior)(points))
        likelihood = Likelihood(MODEL, observation)
        moved = Operator.move(pfbr.gaussian_operator(solver="tsit5", steps=16), KEY, prior, likelihood)
        return moved.log_density - jax.vmap(MODEL.log_prior)(moved.points) - likelihood.values(moved.points)

    found = difference(jnp.asarray(np.random.default_rng(0).normal(size=(7, 2))))
    np.testing.assert_allclose(found, -evidence(MODEL, observation[None])[0], atol=2e-5)


def test_seven_particles_tell_the_evidence_of_a_stream(exact_losses, task):
    """In float32, after six updates."""
    np.testing.assert_allclose(exact_losses, -evidence(MODEL, task.observations), atol=1e-3)


@pytest.mark.parametrize(
    "name", ["one crude step", "hardly moves", pytest.param("wrong weights", marks=pytest.mark.slow)]
)
def test_a_worse_operator_has_a_larger_loss(name, exact_losses, task):
    """KL(q ‖ p) is what is added; 512 evenly drawn particles tell it to a thousandth."""
    if name == "one crude step":
        operator = pfbr.gaussian_operator(solver="heun", steps=1)
    elif name == "hardly moves":
        operator = operator_of(0, "paper", MODEL, width=4, scale=0.1)
    else:
        operator = operator_of(1, "residual", MODEL, width=8, num_features=4, scale=0.3)
    worse = losses_of(KEY, operator, task, 512)
    assert np.sum(worse) > np.sum(exact_losses) + 0.005


def test_with_dynamics_the_loss_is_minus_the_evidence_of_each_observation():
    """Mean over 16 keys: π̂ is a mixture of 256 transition densities, so the loss of a stage is within 0.05."""
    model = LinearDynamics.random(1, 2)
    task = jax.jit(lambda key: ModelFamily(model).sample(key, 5))(jax.random.key(2))
    operator = pfbr.gaussian_operator()
    losses = jax.jit(jax.vmap(lambda k: stage_losses(k, operator, task, 256)))(jax.random.split(KEY, 16))
    assert np.all(np.isfinite(losses))
    gained = np.diff(evidence(model, task.observations), prepend=0.0)
    np.testing.assert_allclose(np.mean(losses, axis=0), -gained, atol=0.05)


def test_gradients_stop_between_stages_unless_asked(task):
    """Same losses both ways; the first stage's gradient is the same, the second's is not."""
    operator = operator_of(0, "paper", MODEL, width=4, num_layers=1, steps=1)
    two = eqx.tree_at(lambda t: (t.observations, t.truths), task, (task.observations[:2], task.truths[:2]))

    @eqx.filter_jit
    def both(operator, through):
        weights, rest = eqx.partition(operator, eqx.is_inexact_array)

        def losses(w):
            return stage_losses(KEY, eqx.combine(w, rest), two, 16, through_stages=through)

        return losses(weights), jax.jacrev(losses)(weights)

    (stopped, stopped_gradient), (through, through_gradient) = both(operator, False), both(operator, True)
    np.testing.assert_allclose(stopped, through, rtol=1e-6)

    def largest(stage):
        pairs = zip(jax.tree.leaves(stopped_gradient), jax.tree.leaves(through_gradient), strict=True)
        return max(np.max(np.abs(a[stage] - b[stage]), initial=0.0) for a, b in pairs)

    assert largest(0) < 1e-5
    assert largest(1) > 1e-2
