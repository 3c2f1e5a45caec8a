"""The noise of the dynamics: matched where that makes a step exact, even in any case."""

import jax
import numpy as np
import pytest

from pfbr.inference.adaptive.filter.matching import MAX_MATCHED
from pfbr.inference.adaptive.filter.model import FilterModel
from pfbr.inference.adaptive.filter.predict import draw_noise, first_cloud
from pfbr.models import LinearDynamics


@pytest.mark.parametrize("linear", [True, False], ids=["declared linear", "not declared"])
def test_very_many_particles_of_a_linear_model_have_matched_noise(linear):
    model = FilterModel(LinearDynamics.random(0, 2), 2, linear)
    cloud = first_cloud(jax.random.key(0), model, 2 * MAX_MATCHED)
    noise = np.asarray(draw_noise(jax.random.key(1), model, cloud), float)
    off = np.max(np.abs(noise.T @ noise / len(noise) - np.eye(2)))
    assert (off < 1e-5) if linear else (1e-5 < off < 0.02)
