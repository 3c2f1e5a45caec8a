"""A model is looked at once, before anything is compiled for it; a right one costs a glance."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import ModelError
from pfbr.models import GaussianMean, LogisticRegression
from pfbr.models.conditions import Conditions
from pfbr.models.first_look import _LOOKED_AT, look_at, look_with, waits_for_a_row


class Faulty(GaussianMean):
    def log_likelihood(self, x, observation):
        return x[2]


class Mute(GaussianMean):
    """Cannot draw an observation."""

    def sample_observation(self, key, x):
        return super().sample_observation(key, x)


Mute.sample_observation = GaussianMean.__mro__[1].sample_observation


class MuteAndFaulty(Mute):
    def log_likelihood(self, x, observation):
        return observation[0] > x[0]


def test_one_object_is_looked_at_once_and_forgotten_with_it():
    model = GaussianMean(2)
    look_at(model)
    assert id(model) in _LOOKED_AT
    look_at(model)
    key = id(model)
    del model
    assert key not in _LOOKED_AT


def test_a_faulty_model_is_refused_every_time():
    model = Faulty(2)
    for _ in range(2):
        with pytest.raises(ModelError, match=r"`Faulty\.log_likelihood` looks at index 2 of an axis with 2 entries"):
            look_at(model)


def test_what_cannot_draw_is_looked_at_with_a_row():
    assert waits_for_a_row(Mute(2))
    assert not waits_for_a_row(GaussianMean(2))
    assert not waits_for_a_row(LogisticRegression(2))
    look_at(MuteAndFaulty(2))
    with pytest.raises(ModelError, match=r"`MuteAndFaulty\.log_likelihood` must return floats; it returns bool"):
        look_with(MuteAndFaulty(2), Conditions(), np.zeros(2), whole=True)
    look_with(Mute(2), Conditions(), np.zeros(2), whole=True)


def test_inside_a_compiled_function_nothing_is_looked_at():
    @jax.jit
    def inside(std):
        look_at(GaussianMean(2, std))
        return std

    assert inside(jnp.ones(())) == 1
