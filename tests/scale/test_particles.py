"""One set of particles over four devices: slots are shared out as systematic resampling says, and answers are right."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import pfbr
from pfbr.scale.particles import ShardedSMC, moments
from tests.test_sharding import on_four_devices

ONE = Mesh(np.asarray(jax.devices()[:1]), ("x",))


@pytest.fixture(scope="module")
def found(tmp_path_factory, root):
    return on_four_devices("particles", tmp_path_factory.mktemp("particles"), root)


def test_each_particle_is_kept_as_often_as_its_weight_says(found):
    weights, shift, kept = found["slots/weights"], found["slots/shift"], found["slots/ancestors"]
    total = len(weights)
    position = (np.arange(total) + shift) / total
    expected = np.searchsorted(np.cumsum(weights / weights.sum()), position, side="right")
    # a slot within rounding of a border may go to either neighbour
    assert np.mean(kept == expected) > 0.999
    counts = np.bincount(kept, minlength=total)
    assert (np.abs(counts - total * weights / weights.sum()) < 1.01).all()
    assert (np.diff(kept) >= 0).all()


@pytest.mark.parametrize("name", ["filter", "static"])
def test_it_does_not_matter_how_many_devices(found, name):
    """The same to rounding, over two resamplings; later, once rounding gave a slot to a neighbour, in distribution."""
    one, four = (found[f"{name}/{number}/ess"] for number in (1, 4))
    np.testing.assert_allclose(four[:5], one[:5], rtol=1e-5)
    np.testing.assert_allclose(four, one, atol=0.02)


@pytest.mark.parametrize("name", ["filter", "static"])
def test_means_spreads_and_evidence_are_those_of_the_exact_posterior(found, name):
    """4,096 particles, one seed: tolerances of five standard errors or more at the effective sample sizes seen."""
    for key, tolerance in (("mean", 0.2), ("covariance", 0.2), ("log_evidence", 0.2)):
        np.testing.assert_allclose(found[f"{name}/4/{key}"], found[f"{name}/exact/{key}"], atol=tolerance)
    assert found[f"{name}/4/resampled"] > 0


def test_a_session_takes_it_as_any_method():
    model = pfbr.models.GaussianMean(2, observation_std=1.0)
    session = pfbr.Session(model, method=ShardedSMC(ONE), num_particles=64)
    posterior = session.update([0.5, 0.5])
    summed = moments(session.method, session._state.own)
    np.testing.assert_allclose(summed.mean, posterior.mean(), atol=1e-5)
    assert posterior.info.log_evidence < 0


def test_particles_are_a_multiple_of_the_devices(found):
    assert "multiple of the 4 devices; got 4095" in str(found["refused/why"])
