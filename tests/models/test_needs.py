"""A method is given what it names and no more; a word that nobody can give is an error that says where it stands."""

import jax
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import ModelError
from pfbr.models import GaussianMean, LinearDynamics, LogisticRegression, MiniBatch
from pfbr.models.conditions import Conditions, bind
from pfbr.models.inverse_likelihood import InverseLikelihood
from pfbr.models.needs import GIVEN, METHODS, all_needs, declared, needs
from pfbr.particles.mixtures import KernelDensity
from pfbr.training.priors import PriorReplaced


def with_method(method: str, arguments: str) -> type:
    """A class `Own` whose `method` has these arguments after `self`."""
    made: dict = {}
    exec(f"def {method}(self, {arguments}): ...", made)
    return type("Own", (), {method: made[method]})


def arguments(method: str, *words: str) -> str:
    return ", ".join((*METHODS[method][0], "*", *words)) if words else ", ".join(METHODS[method][0])


def words_of(cls: type, method: str) -> tuple[str, ...]:
    return declared(cls)[method]


@pytest.mark.parametrize("method", METHODS)
def test_a_word_that_can_be_given_is_needed(method):
    possible = METHODS[method][1]
    assert words_of(with_method(method, arguments(method, *possible)), method) == possible
    assert words_of(with_method(method, arguments(method)), method) == ()


@pytest.mark.parametrize("method", METHODS)
def test_a_word_that_nobody_knows_is_named_with_its_method(method):
    with pytest.raises(ModelError, match=rf"`Own\.{method}` names `weather`.*default"):
        declared(with_method(method, arguments(method, "weather")))


@pytest.mark.parametrize("method", METHODS)
def test_a_word_that_is_not_given_there_is_named_with_its_method(method):
    for word in GIVEN:
        if word not in METHODS[method][1] and word not in METHODS[method][0]:
            with pytest.raises(ModelError, match=rf"`Own\.{method}` names `{word}`, which is not given there"):
                declared(with_method(method, arguments(method, word)))


@pytest.mark.parametrize("method", [m for m, (first, _) in METHODS.items() if first])
def test_a_method_with_too_few_arguments_is_shown_as_it_is_and_should_be(method):
    missing = ", ".join(METHODS[method][0][:-1])
    with pytest.raises(ModelError, match=rf"`Own\.{method}` must take \(self, {', '.join(METHODS[method][0])}\) first"):
        declared(with_method(method, missing or "*, params=None"))


@pytest.mark.parametrize(("word", "meant"), [("input", "inputs"), ("times", "time"), ("param", "params")])
def test_a_near_miss_is_guessed(word, meant):
    found = with_method("log_likelihood", arguments("log_likelihood", word))
    with pytest.raises(ModelError, match=rf"names `{word}`.*Did you mean `{meant}`\?"):
        declared(found)


def test_a_default_makes_a_word_the_users_own():
    own = with_method("log_likelihood", "x, observation, scale=2.0, *, dt=1.0, weather=None")
    assert words_of(own, "log_likelihood") == ("dt",)


def test_words_may_stand_by_place_and_self_may_have_another_name():
    assert words_of(with_method("sample_transition", "key, x, dt, inputs"), "sample_transition") == ("dt", "inputs")

    class Odd:
        def sample_prior(this, key, *, params): ...  # noqa: N805

        @staticmethod
        def log_prior(x): ...

    assert declared(Odd) == {"sample_prior": ("params",), "log_prior": ()}


def test_what_is_open_takes_nothing_by_itself():
    assert words_of(with_method("log_likelihood", "*arguments"), "log_likelihood") == ()
    anything = with_method("log_likelihood", "x, observation, **given")
    assert needs(anything(), "log_likelihood") == ()
    both = with_method("log_likelihood", "x, observation, *, dt, **given")
    assert needs(both(), "log_likelihood") == ("dt",)


def test_a_model_around_another_passes_on_what_the_inner_one_needs():
    prior = KernelDensity.of(jnp.eye(2))
    for outer in (
        lambda m: MiniBatch(m, 3),
        InverseLikelihood,
        lambda m: PriorReplaced(m, prior),
        lambda m: InverseLikelihood(MiniBatch(m, 3)),
    ):
        assert needs(outer(LogisticRegression(2)), "log_likelihood") == ("inputs",)
        assert all_needs(outer(LogisticRegression(2))) == {"inputs"}
        assert all_needs(outer(GaussianMean(2))) == frozenset()
        bound = bind(outer(GaussianMean(2)), Conditions())
        assert needs(bound, "log_likelihood") == ()  # a bound model asks for nothing any more


def test_built_in_models_name_what_they_need():
    assert all_needs(GaussianMean(2)) == all_needs(LinearDynamics.random(0, 2)) == frozenset()
    assert all_needs(LogisticRegression(2)) == {"inputs"}


class Clocked(pfbr.Model):
    dim: int = 1

    def sample_prior(self, key):
        return jax.random.normal(key, (1,))

    def log_prior(self, x):
        return jnp.zeros(())

    def log_likelihood(self, x, observation, *, time, inputs):
        return jnp.zeros(())


def test_what_was_not_given_is_named_with_its_method():
    bound = bind(Clocked(), Conditions(time=jnp.ones(())))
    with pytest.raises(ModelError, match=r"`Clocked\.log_likelihood` names `inputs`, which was not given"):
        bound.log_likelihood(jnp.zeros(1), jnp.zeros(1))
    bound = bind(Clocked(), Conditions(inputs=jnp.ones(())))
    with pytest.raises(ModelError, match=r"`Clocked\.log_likelihood` names `time`.*update\(y, time="):
        bound.log_likelihood(jnp.zeros(1), jnp.zeros(1))
