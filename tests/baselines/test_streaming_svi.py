"""Variational Gaussians reach the closed form as steps grow."""

import numpy as np
import pytest

from pfbr import baselines
from pfbr.particles.particles import weighted_cov, weighted_mean
from tests.baselines.streams import STILL, last, stream, truth_of


@pytest.mark.slow
def test_it_reaches_the_closed_form_as_steps_grow():
    observations = stream(STILL)
    truth = truth_of(STILL, observations)

    def miss(method):
        said = last(method, STILL, observations, 512, seeds=16)[0]
        mean, cov = np.asarray(weighted_mean(said)).mean(0), np.asarray(weighted_cov(said)).mean(0)
        return np.abs(mean - np.asarray(truth.mean[-1])).max() + np.abs(cov - np.asarray(truth.cov[-1])).max()

    short, long = (miss(baselines.StreamingSVI(steps=steps)) for steps in (3, 200))
    assert long < 0.06 < short  # 16 × 512 draws leave about 0.01 of noise
    assert miss(baselines.StreamingSVI(steps=200, full_rank=False)) < 0.06  # the truth has independent components
