"""A model that cannot work is refused before anything is computed with it, and so is an observation."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import InputError, ModelError
from pfbr.models import GaussianMean, LinearDynamics, LogisticRegression, MiniBatch, observation_shape
from pfbr.models.checks import checked_methods_of, checked_model, checked_observation, checked_observations


class Good(pfbr.StateSpaceModel):
    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x**2)

    def sample_transition(self, key, x):
        return x + jax.random.normal(key, (2,))

    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum((observation - x) ** 2)

    def sample_observation(self, key, x):
        return x


def changed(**methods):
    return type("Changed", (Good,), {"__module__": __name__, **methods})()


WRONG = {
    "a class": (lambda: Good, "must be an instance; got the class Good"),
    "a number": (lambda: 3, r"must be a pfbr\.Model .*got int"),
    "no dim": (lambda: type("Mute", (pfbr.Model,), _nothing())(), "must have `dim`"),
    "a dim of zero": (lambda: Good(dim=0), "at least 1; got 0"),
    "a fractional dim": (lambda: Good(dim=1.5), r"whole number.*1\.5"),
    "an unknown word": (lambda: changed(log_prior=lambda self, x, *, wind: x), r"`Changed\.log_prior` names `wind`"),
    "an unknown word of an inner model": (
        lambda: MiniBatch(type("Inner", (GaussianMean,), {"log_likelihood": lambda self, x, o, *, wind: x})(2), 3),
        r"`Inner\.log_likelihood` names `wind`",
    ),
    "a prior of another shape": (lambda: changed(sample_prior=lambda self, key: jnp.zeros(3)), r"shape \(2,\).*\(3,\)"),
    "a prior density for each coordinate": (lambda: changed(log_prior=lambda self, x: x), "one number for one x"),
    "a transition of another shape": (
        lambda: changed(sample_transition=lambda self, key, x: x[:1]),
        r"`Changed.sample_transition` must return shape \(2,\)",
    ),
    "a likelihood of no component": (
        lambda: changed(log_likelihood=lambda self, x, observation: jnp.zeros(3)),
        r"one for each component.*\(2,\).*returns shape \(3,\)",
    ),
    "a likelihood that fails": (
        lambda: changed(log_likelihood=lambda self, x, observation: x[0] + jnp.ones(4) @ observation),
        r"`Changed\.log_likelihood` failed on an example",
    ),
    "a prior that fails": (lambda: changed(sample_prior=lambda self, key: 1 / 0), r"`Changed\.sample_prior` failed"),
}


def _nothing():
    return {
        "sample_prior": lambda self, key: jnp.zeros(1),
        "log_prior": lambda self, x: jnp.zeros(()),
        "log_likelihood": lambda self, x, observation: jnp.zeros(()),
    }


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_model_is_refused_with_the_reason(name):
    build, message = WRONG[name]
    with pytest.raises(ModelError, match=message):
        checked_methods_of(checked_model(build()))


@pytest.mark.parametrize("model", [Good(), GaussianMean(2), LogisticRegression(3), LinearDynamics.random(0, 2)])
def test_a_right_model_passes_as_it_is(model):
    assert checked_methods_of(checked_model(model)) is model


def test_a_likelihood_for_each_component_passes():
    checked_methods_of(changed(log_likelihood=lambda self, x, observation: observation - x))


def one(model, observation):
    return checked_observation(model, observation_shape(model), observation)


def test_an_observation_gets_the_shape_of_the_models():
    two, single = GaussianMean(2), GaussianMean(1)
    np.testing.assert_array_equal(one(two, [1, 2]), [1.0, 2.0])
    np.testing.assert_array_equal(one(single, 3), [3.0])
    np.testing.assert_array_equal(one(single, [[3.0]]), [3.0])
    assert one(two, [1, 2]).dtype == np.float32
    for nothing in (None, np.nan, [np.nan, np.nan]):
        assert np.all(np.isnan(one(two, nothing)))
        assert one(two, nothing).shape == (2,)
    assert np.isnan(one(two, [1.0, np.nan])[1])


@pytest.mark.parametrize(
    ("observation", "word"),
    [
        ([1.0], r"shape \(2,\).*got \(1,\)"),
        (np.zeros((5, 2)), r"pfbr\.run"),
        ([1.0, np.inf], "inf"),
        ("text", "numbers"),
        ([1.0, 1j], "complex"),
        ([[1.0], [1.0, 2.0]], "array of numbers"),
        ([1.0, 1e300], "inf"),
    ],
)
def test_an_observation_that_does_not_fit_is_refused(observation, word):
    with pytest.raises(InputError, match=word):
        one(GaussianMean(2), observation)


def test_streams_are_one_or_many():
    assert checked_observations(GaussianMean(2), np.zeros((4, 2)))[1] is False
    assert checked_observations(GaussianMean(2), np.zeros((3, 4, 2)))[1] is True
    array, many = checked_observations(GaussianMean(1), np.zeros(4))
    assert (array.shape, many) == ((4, 1), False)
    assert checked_observations(MiniBatch(GaussianMean(2), 5), np.zeros((4, 5, 2)))[1] is False
    for wrong, word in ((np.zeros((4, 3)), "got"), (np.zeros((0, 2)), "empty"), (np.zeros(2), "got"), (3.0, "got")):
        with pytest.raises(InputError, match=word):
            checked_observations(GaussianMean(2), wrong)
