"""Parameters beside a state: against a grid over the parameter with Kalman's evidence at each value."""

import jax
import numpy as np
import pytest

import pfbr
from pfbr.errors import InputError
from pfbr.models.base import StateSpaceModel
from tests.inference.nested.local_level import STREAM, LocalLevel, exact


class Plain(LocalLevel):
    """The same, with draws alone."""

    prior_from_normal = StateSpaceModel.prior_from_normal
    transition_from_normal = StateSpaceModel.transition_from_normal

    def sample_transition(self, key, x, *, params):
        return x + jax.numpy.exp(params["log_step"]) * jax.random.normal(key, (1,))


@pytest.mark.parametrize(
    "model", [LocalLevel(), pytest.param(Plain(), marks=pytest.mark.slow)], ids=["normals", "draws"]
)
def test_the_parameter_and_the_evidence_are_those_of_the_grid(model):
    """128 outer particles: the mean to 0.35 posterior standard deviations (128 exact draws: 0.09), evidence to 0.3."""
    mean, std, log_evidence = exact(STREAM)
    trace = pfbr.run(model, STREAM, num_particles=128, history=32)
    parameters = trace[-1].parameters
    assert abs(parameters.mean()["log_step"] - mean) < 0.35 * std
    assert 0.7 < parameters.std()["log_step"] / std < 1.3
    assert abs(trace.info.log_evidence[-1] - log_evidence) < 0.3
    assert trace.info.exact.all()
    assert not trace.info.flagged.any()
    assert parameters.samples["log_step"].shape == (128,)


@pytest.mark.slow  # another size of past, compiled anew
def test_a_bounded_past_stays_near_the_grid_and_says_so():
    """Eight rows kept of 25: the mean to 0.6 standard deviations."""
    mean, std, log_evidence = exact(STREAM)
    trace = pfbr.run(LocalLevel(), STREAM, num_particles=128, history=8)
    parameters = trace[-1].parameters
    assert trace.info.exact[:8].all()
    assert not trace.info.exact[8:].any()
    assert abs(parameters.mean()["log_step"] - mean) < 0.6 * std
    assert 0.6 < parameters.std()["log_step"] / std < 1.4
    assert abs(trace.info.log_evidence[-1] - log_evidence) < 0.6


def test_a_method_that_cannot_learn_parameters_says_so():
    with pytest.raises(InputError, match="parameters beside its state"):
        pfbr.Session(LocalLevel(), method="gaussian")


@pytest.mark.slow  # another model, compiled anew
def test_what_is_impossible_at_every_particle_is_refused():
    class Positive(LocalLevel):
        def log_likelihood(self, x, observation):
            return np.float32(0.0) * x[0] + jax.numpy.where(observation[0] > 0, 0.0, -np.inf)

    session = pfbr.Session(Positive(), num_particles=16, history=4)
    session.update([1.0])
    with pytest.raises(pfbr.errors.LikelihoodError, match="cannot happen"):
        session.update([-1.0])
    assert session.stage == 1
