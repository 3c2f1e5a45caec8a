"""Sessions that repair and retract, flows run backwards, and posteriors in ArviZ's form."""

import arviz
import jax
import numpy as np
import pytest
from jax import numpy as jnp
from pfbr.inference.arviz import to_arviz

import pfbr
from pfbr.baselines import OnePassSMC
from pfbr.errors import InputError, LikelihoodError
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.session import Posterior
from pfbr.metrics.truth import kalman
from pfbr.models import GaussianMean, LinearDynamics
from pfbr.models.simulate import simulate
from pfbr.particles.particles import Particles, equally_weighted

KEY = jax.random.key(0)
MODEL, SYSTEM = GaussianMean(2, observation_std=1.0), LinearDynamics.random(1, 2)
OPERATOR = pfbr.gaussian_operator()


@pytest.mark.parametrize("model", [MODEL, SYSTEM], ids=["static", "dynamics"])
def test_retracted_observations_leave_no_trace(model):
    session, other = (pfbr.Session(KEY, OPERATOR, model, num_particles=32, undo=2) for _ in range(2))
    with pytest.raises(InputError, match="no observation yet"):
        session.retract()
    first = session.update([0.5, 0.2])
    other.update([0.5, 0.2])
    second = session.update([90.0, 90.0])  # a slip
    session.update([-3.0, 1.0])
    np.testing.assert_array_equal(session.retract().particles, second.particles)
    np.testing.assert_array_equal(session.retract().particles, first.particles)
    assert session.stage == 1
    with pytest.raises(InputError, match="used up"):
        session.retract()
    np.testing.assert_array_equal(session.update([0.1, 0.3]).particles, other.update([0.1, 0.3]).particles)


def test_every_session_says_how_far_to_trust_a_step():
    info = pfbr.Session(KEY, OPERATOR, SYSTEM, num_particles=64).update([0.5, 0.2]).info
    names = "ess", "step_ess", "pareto_k", "flagged", "repaired", "log_evidence_increment", "log_evidence", "num_steps"
    assert set(names) <= set(info)
    assert "ess" not in pfbr.Session(KEY, OPERATOR, SYSTEM, num_particles=64, repair=None).update([0.5, 0.2]).info


class Undefined(GaussianMean):
    """A likelihood that is NaN where x is negative."""

    def log_likelihood(self, x, observation):
        return jnp.where(x[0] < 0, jnp.nan, super().log_likelihood(x, observation))


def test_a_likelihood_that_is_nan_somewhere_is_refused():
    session = pfbr.Session(KEY, OPERATOR, Undefined(2), num_particles=64)
    with pytest.raises(LikelihoodError, match="observation 1 has a log likelihood that is NaN at"):
        session.update([0.5, 0.2])
    assert session.stage == 0
    with pytest.raises(LikelihoodError, match="NaN at"):
        pfbr.run(KEY, OPERATOR, Undefined(2), [[0.5, 0.2]], num_particles=64)
    with pytest.raises(InputError, match="complex"):
        session.update([0.5 + 1j, 0.2])


@pytest.mark.parametrize("solver", ["closed-form", "heun"])
def test_the_flow_runs_backwards(solver):
    """In closed form to rounding; by a solver better with more steps."""
    points = jax.vmap(MODEL.sample_prior)(jax.random.split(KEY, 64))
    prior = equally_weighted(points, jax.vmap(MODEL.log_prior)(points))
    likelihood = Likelihood(MODEL, jnp.array([2.0, -1.0]))
    errors = []
    for steps in (1,) if solver == "closed-form" else (4, 16):
        operator = pfbr.gaussian_operator(solver=solver, steps=steps)

        @jax.jit
        def there_and_back(operator=operator):
            moved = operator.move(KEY, prior, likelihood)
            return operator.move_back(points, KEY, equally_weighted(moved.points, moved.log_density), likelihood)

        back = there_and_back()
        errors.append(float(jnp.max(jnp.abs(back.points - points))))
        np.testing.assert_allclose(back.log_density, prior.log_density, atol=20 * errors[-1] + 1e-5)
    assert errors[-1] < (1e-5 if solver == "closed-form" else min(0.1 * errors[0], 0.01))


@pytest.mark.parametrize("keep_history", [0, pytest.param(8, marks=pytest.mark.slow)])
def test_an_observation_of_long_ago_is_taken_back(keep_history):
    """Compared with a session that never saw it. Conjugate, so that only rounding and, without a history, the
    continuation of the past are left."""
    stream = np.array([[0.5, 0.2], [4.0, -3.0], [0.1, 0.3], [-0.4, 0.8], [0.9, -0.2]])
    session, other = (
        pfbr.Session(KEY, OPERATOR, MODEL, num_particles=64, repair="auto", keep_history=keep_history) for _ in range(2)
    )
    for i, observation in enumerate(stream):
        session.update(observation)
        if i != 1:
            clean = other.update(observation)
    seen = session.posterior
    taken = session.retract(stream[1])
    assert session.stage == 4
    assert np.max(np.abs(seen.mean() - clean.mean())) > 0.3
    np.testing.assert_allclose(taken.mean(), clean.mean(), atol=1e-3)
    np.testing.assert_allclose(taken.cov(), clean.cov(), atol=1e-3)
    np.testing.assert_allclose(taken.info["log_evidence"], clean.info["log_evidence"], atol=0.01)
    np.testing.assert_allclose(session.update([1.0, 1.0]).mean(), other.update([1.0, 1.0]).mean(), atol=1e-3)
    session.retract()
    np.testing.assert_array_equal(session.retract().particles, seen.particles)  # the withdrawal is undone
    assert session.stage == 5
    if keep_history:
        with pytest.raises(InputError, match="not among the 5 observations"):
            session.retract([7.0, 7.0])


def test_what_cannot_be_taken_back_is_refused_and_nothing_changes():
    moving = pfbr.Session(KEY, OPERATOR, SYSTEM, num_particles=32)
    with pytest.raises(InputError, match="no observation yet"):
        moving.retract([0.5, 0.2])
    before = moving.update([0.5, 0.2])
    with pytest.raises(InputError, match="does not move"):
        moving.retract([0.5, 0.2])
    with pytest.raises(InputError, match="shape"):
        moving.retract([0.5])
    np.testing.assert_array_equal(moving.posterior.particles, before.particles)
    rival = pfbr.Session(KEY, OnePassSMC(), MODEL, num_particles=32)
    rival.update([0.5, 0.2])
    with pytest.raises(InputError, match="only an operator's flow runs backwards"):
        rival.retract([0.5, 0.2])


def test_a_session_that_repairs_says_what_it_did():
    stream = np.asarray(simulate(jax.random.key(1), MODEL, 3).observations)
    session = pfbr.Session(KEY, OPERATOR, MODEL, num_particles=128, repair="auto", keep_history=4)
    for observation in stream:
        posterior = session.update(observation)
    truth = kalman(MODEL, jnp.asarray(stream))
    assert posterior.info["repaired"] == 0
    assert posterior.info["ess"] > 100
    np.testing.assert_allclose(posterior.info["log_evidence"], truth.log_evidence[-1], atol=0.05)
    np.testing.assert_allclose(posterior.mean(), truth.mean[-1], atol=0.03)
    with pytest.raises(InputError, match="keep_history"):
        pfbr.Session(KEY, OPERATOR, MODEL, repair=None, keep_history=4)


def test_a_posterior_and_a_trace_go_to_arviz():
    session = pfbr.Session(KEY, OPERATOR, MODEL, num_particles=32)
    posterior = session.update([0.5, 0.2])
    data = to_arviz(posterior, name="theta")
    np.testing.assert_allclose(data["posterior"]["theta"].values[0], posterior.particles)
    np.testing.assert_allclose(data["sample_stats"]["log_density"].values[0], posterior.log_density)
    summary = arviz.summary(data, kind="stats")
    np.testing.assert_allclose(np.asarray(summary["mean"], float), posterior.mean(), atol=0.02)  # rounded words in 1.x
    trace = pfbr.run(KEY, OPERATOR, MODEL, np.zeros((3, 4, 2)), num_particles=32)
    chains = to_arviz(trace, stage=1)
    assert chains["posterior"]["x"].shape == (3, 32, 2)
    np.testing.assert_allclose(chains["weighted_posterior"]["x"].values, trace.particles.points[:, 1])
    log_density = jnp.arange(4.0)
    uneven = Particles(log_density[:, None], jnp.log(jnp.array([0.1, 0.1, 0.3, 0.5])), log_density)
    weighted = to_arviz(Posterior(uneven, {}))
    drawn = weighted["posterior"]["x"].values[0, :, 0]
    np.testing.assert_array_equal(drawn, [1, 2, 3, 3])
    np.testing.assert_array_equal(weighted["sample_stats"]["log_density"].values[0], drawn)  # draw by draw
    np.testing.assert_allclose(np.exp(weighted["weighted_posterior"]["log_weight"].values).sum(), 1, rtol=1e-5)
    with pytest.raises(InputError, match="4 stages"):
        to_arviz(trace, stage=4)
    with pytest.raises(InputError, match="Posterior"):
        to_arviz([1.0])
