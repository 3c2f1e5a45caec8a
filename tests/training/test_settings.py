"""Settings that cannot be are refused when they are made; the budget is in minutes or in steps."""

import dataclasses
import math

import pytest

from pfbr.errors import InputError
from pfbr.training import TrainingSettings


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"steps": 0}, "steps"),
        ({"minutes": -1.0}, "minutes"),
        ({"minutes": 0.0}, "minutes"),
        ({"num_particles": 1}, "num_particles"),
        ({"batch": 0}, "batch"),
        ({"length": 0}, "length"),
        ({"segments": 0}, "segments"),
        ({"validate_every": 0}, "validate_every"),
        ({"validation_tasks": 0}, "validation_tasks"),
        ({"priors": "flat"}, "generative"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, word):
    with pytest.raises(InputError, match=word):
        TrainingSettings(**settings)


def test_the_budget_is_five_minutes_unless_it_is_said():
    assert TrainingSettings().seconds == 300
    assert TrainingSettings(minutes=2).seconds == 120
    assert TrainingSettings(steps=10).seconds == math.inf
    assert TrainingSettings(minutes=2, steps=10).seconds == 120


def test_they_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainingSettings().batch = 3  # type: ignore[misc]
    assert hash(TrainingSettings()) == hash(TrainingSettings())
