"""Baselines converge to the truth where it has a closed form, at the rate that theory gives."""

import numpy as np
import pytest

from pfbr import baselines
from tests.baselines.streams import MOVING, STILL, error_of_mean, last, stream, truth_of


@pytest.mark.parametrize(
    "name",
    [
        "smc",
        # compilation is what costs; these have a quicker test of their own, below or in the contract
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("smc-multinomial", "smc-optimal", "ibis", "aesmc-mlp", "enkf", "exact")
        ),
    ],
)
def test_error_falls_with_the_root_of_the_number_of_particles(name):
    """Slope of log error on log N over N = 64 … 512; the root of 512 squares is known to 3 %, so the slope to ±0.02.

    The band of ±0.2 is more than five of these. The runs with 64 particles are those of the test of the evidence.
    """
    model = STILL if name in ("ibis", "enkf") else MOVING
    observations, method = stream(model), baselines.make(name, model)
    errors = [error_of_mean(method, model, observations, n, seeds=256) for n in (64, 512)]
    slope = np.log(errors[1] / errors[0]) / np.log(512 / 64)
    assert -0.7 < slope < -0.3


@pytest.mark.parametrize("name", ["smc", "smc-optimal", pytest.param("aesmc-gru", marks=pytest.mark.slow)])
def test_evidence_is_unbiased(name):
    """E Ẑ = Z exactly, for any number of particles: z = 5 over 256 runs."""
    observations = stream(MOVING)
    _, log_evidence = last(baselines.make(name, MOVING), MOVING, observations, 64, seeds=256)
    ratio = np.exp(np.asarray(log_evidence) - float(truth_of(MOVING, observations).log_evidence[-1]))
    assert abs(ratio.mean() - 1) < 5 * ratio.std(ddof=1) / 16


@pytest.mark.slow
@pytest.mark.parametrize("method", [baselines.OnePassSMC(), baselines.MirrorDescent()])
def test_what_smooths_comes_closer_with_more_particles(method):
    few, many = (error_of_mean(method, STILL, stream(STILL), n, seeds=32) for n in (32, 512))
    assert many < 0.5 * few
