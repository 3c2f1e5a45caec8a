"""The demonstration: what its records hold, stage by stage."""

import numpy as np
import pytest

from pfbr.judging.demo import two_modes
from pfbr.judging.demo.record import DemoRecord


@pytest.fixture(scope="module")
def record(demo_directory) -> DemoRecord:
    return DemoRecord.load(demo_directory, two_modes.NAME)


def test_every_array_begins_before_the_first_observation(record, demo_settings):
    stages, n = demo_settings.num_observations + 1, demo_settings.num_particles
    for name in ("exact", "pfbr", "smc"):
        assert record.arrays[f"{name}_points"].shape == (stages, n, 2)
        np.testing.assert_allclose(record.arrays[f"{name}_weights"].sum(axis=1), 1, rtol=1e-4)
        assert record.arrays[f"{name}_score"].shape == record.arrays[f"{name}_mass"].shape == (stages,)
    assert np.ptp(record.arrays["smc_weights"][0]) < 1e-6  # draws of the prior, not yet weighed
    assert record.arrays["log_density"].shape == (stages, demo_settings.cells, demo_settings.cells)


def test_the_prior_falls_behind_and_the_methods_do_not(record):
    """The prior stays where it began; after six observations it is half a nat worse than exact draws, and more."""
    score = {name: record.arrays[f"{name}_score"] for name in ("exact", "pfbr", "smc", "prior")}
    assert np.ptp(record.arrays["prior_mass"]) == 0
    assert score["prior"][-1] - score["exact"][-1] > 0.5
    assert score["pfbr"][-1] - score["exact"][-1] < 0.2
    assert score["smc"][-1] - score["exact"][-1] < 0.5


def test_the_density_and_its_levels_are_those_of_the_posterior(record, demo_settings):
    """On the window it has nearly all of its mass, and each level encloses what it says."""
    cell = (2 * demo_settings.reach / demo_settings.cells) ** 2
    density = np.exp(record.arrays["log_density"].astype(float)) * cell
    np.testing.assert_allclose(density.sum(axis=(1, 2)), 1, atol=5e-3)
    for stage, levels in enumerate(record.arrays["levels"]):
        inside = [density[stage][record.arrays["log_density"][stage] >= level].sum() for level in levels]
        np.testing.assert_allclose(inside, demo_settings.contour_masses, atol=0.02)


def test_an_update_took_some_time(record):
    assert all(0 < seconds < 1 for seconds in record.settings["seconds_per_update"].values())
