"""At the exact posterior the loss is minus the log evidence at every particle; anything else is worse."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp
from weights import operator_of

import pfbr
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.operator import Operator
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.simulate import simulate
from pfbr.particles.particles import equally_weighted
from pfbr.particles.qmc import match_moments
from pfbr.training.objectives.elbo import stage_losses

MODEL = GaussianMean(2, observation_std=1.5)
OBSERVATIONS = simulate(jax.random.key(0), MODEL, 6).observations
KEY = jax.random.key(1)
losses_of = eqx.filter_jit(stage_losses)


@pytest.fixture(scope="module")
def exact_losses():
    return losses_of(KEY, pfbr.gaussian_operator(solver="tsit5", steps=8), MODEL, OBSERVATIONS, 7)


def test_every_particle_tells_the_evidence(x64):
    """log q(x) − log p(x, o) is one number, whatever the particle: −log p(o). Nine digits but for the frame's ridge."""
    observation = jnp.asarray([1.0, -2.0])
    points = match_moments(jnp.asarray(np.random.default_rng(0).normal(size=(7, 2))))
    prior = equally_weighted(points, jax.vmap(MODEL.log_prior)(points))
    likelihood = Likelihood(MODEL, observation)
    moved = eqx.filter_jit(Operator.move)(pfbr.gaussian_operator(solver="tsit5", steps=16), KEY, prior, likelihood)
    difference = moved.log_density - jax.vmap(MODEL.log_prior)(moved.points) - likelihood.values(moved.points)
    np.testing.assert_allclose(difference, -kalman(MODEL, observation[None]).log_evidence[0], atol=2e-5)


def test_seven_particles_tell_the_evidence_of_a_stream(exact_losses):
    """In float32, after six updates."""
    np.testing.assert_allclose(exact_losses, -kalman(MODEL, OBSERVATIONS).log_evidence, atol=1e-3)


@pytest.mark.parametrize("name", ["one crude step", "hardly moves", "wrong weights"])
def test_a_worse_operator_has_a_larger_loss(name, exact_losses):
    """KL(q ‖ p) is what is added; 512 evenly drawn particles tell it to a thousandth."""
    if name == "one crude step":
        operator = pfbr.gaussian_operator(solver="heun", steps=1)
    elif name == "hardly moves":
        operator = operator_of(0, "paper", MODEL, width=4, scale=0.1)
    else:
        operator = operator_of(1, "residual", MODEL, width=8, num_features=4, scale=0.3)
    worse = losses_of(KEY, operator, MODEL, OBSERVATIONS, 512)
    assert float(jnp.sum(worse)) > float(jnp.sum(exact_losses)) + 0.005


def test_with_dynamics_the_loss_is_minus_the_evidence_of_each_observation():
    """Mean over 16 keys: π̂ is a mixture of 256 transition densities, so the loss of a stage is within 0.05."""
    model = LinearDynamics.random(1, 2)
    observations = simulate(jax.random.key(2), model, 5).observations
    operator = pfbr.gaussian_operator(solver="tsit5", steps=4)
    keys = jax.random.split(KEY, 16)
    losses = jax.jit(jax.vmap(lambda k: stage_losses(k, operator, model, observations, 256)))(keys)
    evidence = np.diff(np.asarray(kalman(model, observations).log_evidence), prepend=0.0)
    assert np.all(np.isfinite(losses))
    np.testing.assert_allclose(jnp.mean(losses, axis=0), -evidence, atol=0.05)


def test_gradients_stop_between_stages_unless_asked():
    """Same losses both ways; the first stage's gradient is the same, the second's is not."""
    operator = operator_of(0, "paper", MODEL, width=4, num_layers=1, steps=1)

    @eqx.filter_jit
    def both(operator, through):
        weights, rest = eqx.partition(operator, eqx.is_inexact_array)

        def losses(w):
            return stage_losses(KEY, eqx.combine(w, rest), MODEL, OBSERVATIONS[:2], 16, through_stages=through)

        return losses(weights), jax.jacrev(losses)(weights)

    (stopped, stopped_gradient), (through, through_gradient) = both(operator, False), both(operator, True)
    np.testing.assert_allclose(stopped, through, rtol=1e-6)

    def largest(stage):
        pairs = zip(jax.tree.leaves(stopped_gradient), jax.tree.leaves(through_gradient), strict=True)
        return max(np.max(np.abs(a[stage] - b[stage]), initial=0.0) for a, b in pairs)

    assert largest(0) < 1e-5
    assert largest(1) > 1e-2
