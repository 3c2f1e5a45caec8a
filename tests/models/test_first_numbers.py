"""Numbers at a handful of draws: what is not finite, or the same for every key, is refused by method and value."""

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import ModelError
from pfbr.models import GaussianMean
from pfbr.models import first_numbers as numbers
from pfbr.models.conditions import Conditions


class Narrow(GaussianMean):
    """Its prior has a smaller support than its draws."""

    def log_prior(self, x):
        return jnp.where(jnp.all(jnp.abs(x) < 0.01), 0.0, -jnp.inf)


class Spiky(GaussianMean):
    def log_likelihood(self, x, observation):
        return jnp.where(x[0] > 0, jnp.inf, 0.0)


class Known(GaussianMean):
    def sample_prior(self, key):
        return jnp.full(2, 7.5)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Narrow(2), r"`Narrow\.log_prior` is −inf at a draw of `sample_prior`, x = \[-?[0-9.]+, -?[0-9.]+\]"),
        (Spiky(2), r"`Spiky\.log_likelihood` is \+inf at a draw of `sample_observation`"),
        (Known(2), r"`Known\.sample_prior` gave 8 keys one and the same draw, \[7\.5, 7\.5\]"),
    ],
)
def test_it_is_refused_with_method_and_value(model, words):
    with pytest.raises(ModelError, match=words):
        numbers.check_numbers(model)


def test_a_right_model_passes():
    numbers.check_numbers(GaussianMean(2))


def test_an_observation_that_has_come_is_asked_about():
    numbers.check_likelihood_values(GaussianMean(2), Conditions(), jnp.zeros(2))
    with pytest.raises(ModelError, match=r"\+inf at the observation \[0, 0\]"):
        numbers.check_likelihood_values(Spiky(2), Conditions(), jnp.zeros(2))


def test_an_option_that_a_jaxlib_does_not_know_is_left_out(monkeypatch):
    def refuses(*args):
        raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: No such compile option: 'xla_cpu_use_fusion_emitters'")

    plain = numbers._JITTED[numbers._at_draws][1]
    monkeypatch.setitem(numbers._JITTED, numbers._at_draws, [refuses, plain])
    numbers.check_numbers(GaussianMean(2))


def test_a_short_list_of_values_is_shown():
    assert numbers._short(np.arange(9.0)) == "[0, 1, 2, 3, …]"
