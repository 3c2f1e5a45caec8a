"""A model under the conditions of one observation is plain functions of a flat x."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

import pfbr
from pfbr.errors import ModelError
from pfbr.models import GaussianMean, GaussianMixture, LinearDynamics, LogisticRegression, MiniBatch
from pfbr.models.base import normal_log_densities, normal_log_density
from pfbr.models.conditions import (
    Conditions,
    bind,
    conditions_of,
    example_of,
    observation_shape,
    rebind,
    stays,
    unbound,
)

X, Y = jnp.array([0.3, -1.0]), jnp.array([1.0, 2.0])
SEEN = jnp.array([True, False])
NOTHING = jnp.array([False, False])


class Componentwise(GaussianMean):
    """One number for each component."""

    def log_likelihood(self, x, observation):
        return normal_log_densities(observation, x, self.observation_std)


class LogNormal(GaussianMean):
    """Observations above zero: log 0 is no number."""

    def log_likelihood(self, x, observation):
        return normal_log_densities(jnp.log(observation), x, 1.0) - jnp.log(observation)

    def sample_observation(self, key, x):
        return jnp.exp(x + jax.random.normal(key, x.shape))


class Masked(GaussianMean):
    """It leaves out by itself what was not observed."""

    def log_likelihood(self, x, observation, *, observed):
        return jnp.sum(jnp.where(observed, normal_log_densities(observation, x, self.observation_std), 0.0))


class Walk(pfbr.StateSpaceModel):
    """A walk whose step grows with the elapsed time, of a named unknown above zero."""

    unknowns = {"level": pfbr.positive(2)}  # noqa: RUF012

    def sample_prior(self, key):
        return {"level": jnp.exp(jax.random.normal(key, (2,)))}

    def log_prior(self, x):
        return normal_log_density(jnp.log(x["level"]), 0.0, 1.0) - jnp.sum(jnp.log(x["level"]))

    def sample_transition(self, key, x, *, dt):
        return {"level": x["level"] * jnp.exp(jnp.sqrt(dt) * jax.random.normal(key, (2,)))}

    def log_transition(self, x_next, x, *, dt):
        after, before = jnp.log(x_next["level"]), jnp.log(x["level"])
        return normal_log_density(after, before, jnp.sqrt(dt)) - jnp.sum(after)

    def log_likelihood(self, x, observation, *, inputs):
        return normal_log_densities(observation, inputs["gain"] * x["level"], 1.0)

    def sample_observation(self, key, x, *, inputs):
        return inputs["gain"] * x["level"] + jax.random.normal(key, (2,))

    def sample_inputs(self, key):
        return {"gain": jax.random.uniform(key, (2,))}


@pytest.mark.parametrize(
    "model", [GaussianMean(2), GaussianMixture(), LinearDynamics.random(0, 2), MiniBatch(GaussianMean(2), 3)]
)
def test_a_plain_model_is_not_wrapped(model):
    assert bind(model, Conditions()) is model
    assert bind(model, Conditions(time=jnp.ones(()), inputs=jnp.ones(2))) is model  # nobody asked
    assert unbound(model) is model
    assert conditions_of(model).empty
    assert stays(model) is None
    assert rebind(model, Conditions(dt=jnp.ones(()))) is model


def test_a_model_at_rest_does_not_care_how_much_time_passed():
    assert bind(GaussianMean(2), Conditions(dt=jnp.zeros(()))) == GaussianMean(2)
    assert stays(bind(LogisticRegression(2), Conditions(dt=jnp.zeros(()), inputs=Y))) is None


def test_binding_again_replaces_the_conditions():
    model = LogisticRegression(2)
    once = bind(model, Conditions(inputs=Y))
    twice = bind(once, Conditions(inputs=2 * Y))
    assert unbound(twice) is model
    np.testing.assert_array_equal(conditions_of(twice).inputs, 2 * Y)
    again = rebind(once, Conditions(inputs=3 * Y))
    np.testing.assert_array_equal(conditions_of(again).inputs, 3 * Y)
    expected = model.log_likelihood(X, jnp.ones(1), inputs=3 * Y)
    np.testing.assert_array_equal(again.log_likelihood(X, jnp.ones(1)), expected)


@pytest.mark.parametrize("model", [LinearDynamics.random(0, 2), Walk()], ids=["plain", "named"])
def test_another_report_at_the_same_instant_finds_the_unknown_where_it_was(model):
    """Bit for bit, whatever the model's own formula makes of dt = 0; also under jit, where dt is traced."""
    key = jax.random.key(0)

    @jax.jit
    def moved(dt):
        bound = bind(model, Conditions(dt=dt))
        return bound.sample_transition(key, X), stays(bound)

    same, still = moved(jnp.zeros(()))
    np.testing.assert_array_equal(same, X)
    assert still
    other, still = moved(jnp.asarray(0.5))
    assert not np.any(np.isclose(other, X))
    assert not still


def test_without_an_elapsed_time_one_unit_has_passed():
    key, bound = jax.random.key(0), bind(Walk(), Conditions())
    expected = bind(Walk(), Conditions(dt=jnp.ones(()))).sample_transition(key, X)
    np.testing.assert_array_equal(bound.sample_transition(key, X), expected)
    plain = LinearDynamics.random(0, 2)
    at_one = bind(plain, Conditions(dt=jnp.ones(())))
    np.testing.assert_array_equal(at_one.sample_transition(key, X), plain.sample_transition(key, X))
    np.testing.assert_array_equal(at_one.transition_from_normal(X, Y), plain.transition_from_normal(X, Y))
    np.testing.assert_array_equal(at_one.transition_mean_and_std(X), plain.transition_mean_and_std(X))


def test_named_unknowns_become_free_numbers(x64):
    """Densities of a log-normal walk are those of a normal walk of its logarithm; nine digits."""
    x, x_next = jnp.asarray([0.3, -1.0]), jnp.asarray([0.5, 0.1])
    bound = bind(Walk(), Conditions(dt=jnp.asarray(0.25), inputs={"gain": jnp.asarray([1.0, 2.0])}))
    assert bound.dim == 2
    np.testing.assert_allclose(bound.log_prior(x), normal_log_density(x, 0.0, 1.0), rtol=1e-12)
    np.testing.assert_allclose(bound.log_transition(x_next, x), normal_log_density(x_next, x, 0.5), rtol=1e-12)
    expected = normal_log_density(Y, jnp.asarray([1.0, 2.0]) * jnp.exp(x), 1.0)
    np.testing.assert_allclose(bound.log_likelihood(x, Y), expected, rtol=1e-12)
    key = jax.random.key(0)
    np.testing.assert_allclose(jnp.exp(bound.sample_prior(key)), Walk().sample_prior(key)["level"], rtol=1e-12)
    moved = Walk().sample_transition(key, {"level": jnp.exp(x)}, dt=jnp.asarray(0.25))["level"]
    np.testing.assert_allclose(jnp.exp(bound.sample_transition(key, x)), moved, rtol=1e-12)
    assert bound.linear_gaussian() is None
    assert bound.transition_mean_and_std(x) is None
    assert bound.sample_observation(key, x).shape == (2,)


def test_a_componentwise_likelihood_is_summed_over_what_was_seen():
    model = Componentwise(2)
    each = model.log_likelihood(X, Y)
    np.testing.assert_allclose(bind(model, Conditions()).log_likelihood(X, Y), np.sum(each), rtol=1e-6)
    np.testing.assert_allclose(bind(model, Conditions(observed=SEEN)).log_likelihood(X, Y), each[0], rtol=1e-6)
    assert float(bind(model, Conditions(observed=NOTHING)).log_likelihood(X, Y)) == 0.0


class Unsampled(pfbr.Model):
    """One number for each component, and no way to draw an observation: its shape is that of the one that came."""

    dim: int = 2

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return jnp.sum(normal_log_densities(x, 0.0, 1.0))

    def log_likelihood(self, x, observation):
        return normal_log_densities(observation, x, 1.0)


def test_a_componentwise_likelihood_is_summed_where_only_the_observation_tells_its_shape():
    bound = bind(Unsampled(), Conditions(), seen=Y)
    assert bound.log_likelihood(X, Y) == pytest.approx(float(jnp.sum(normal_log_densities(Y, X, 1.0))))
    trace = pfbr.run(Unsampled(), np.zeros((3, 2)), method="enkf", num_particles=64)  # needs a gradient
    assert trace.mean().shape == (3, 2)


def test_one_number_for_all_counts_unless_nothing_was_seen():
    model = GaussianMean(2)
    whole = bind(model, Conditions(observed=jnp.array([True, True])))
    np.testing.assert_array_equal(whole.log_likelihood(X, Y), model.log_likelihood(X, Y))
    assert float(bind(model, Conditions(observed=NOTHING)).log_likelihood(X, Y)) == 0.0


def test_a_model_that_names_observed_gets_the_mask():
    model, each = Masked(2), Componentwise(2).log_likelihood(X, Y)
    some = bind(model, Conditions(observed=SEEN))
    np.testing.assert_allclose(some.log_likelihood(X, Y), each[0], rtol=1e-6)
    whole = bind(model, Conditions(), shape=(2,))  # all of it, where nothing is said
    np.testing.assert_allclose(whole.log_likelihood(X, Y), np.sum(each), rtol=1e-6)
    with pytest.raises(ModelError, match="names `observed`"):
        bind(model, Conditions()).log_likelihood(X, Y)


@pytest.mark.parametrize("kind", [Componentwise, Masked, GaussianMean])
@pytest.mark.parametrize("observed", [SEEN, NOTHING])
def test_gradients_do_not_see_what_was_not_observed(kind, observed):
    """NaN was made 0 before it came here; the gradient is that of the seen components alone."""
    if kind is GaussianMean and bool(observed.any()):
        pytest.skip("one number for all cannot leave out a part")
    bound = bind(kind(2), Conditions(observed=observed))
    filled = jnp.where(observed, Y, 0.0)
    gradient = jax.grad(bound.log_likelihood)(X, filled)
    np.testing.assert_allclose(gradient, jnp.where(observed, (Y - X) / 9.0, 0.0), rtol=1e-5)


def test_a_filler_inside_the_support_keeps_gradients_finite():
    """Where 0 is impossible, what stands for a missing component must be possible: 0 × ∞ is no gradient."""
    bound = bind(LogNormal(2), Conditions(observed=SEEN))
    value, gradient = jax.value_and_grad(bound.log_likelihood)(X, jnp.where(SEEN, Y, 1.0))
    np.testing.assert_allclose(value, LogNormal(2).log_likelihood(X, Y)[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, [jnp.log(Y[0]) - X[0], 0.0], rtol=1e-5)


def test_shapes_are_known_before_anything_is_observed():
    assert observation_shape(Walk()) == (2,)
    assert observation_shape(LogisticRegression(3)) == (1,)
    example = example_of(Walk())
    assert conditions_of(example).inputs["gain"].shape == (2,)
    assert float(conditions_of(example).dt) == 1.0

    class Secret(Walk):
        sample_inputs = pfbr.Model.sample_inputs

    assert example_of(Secret()) is None
    assert observation_shape(Secret()) is None
    seen = bind(Secret(), Conditions(inputs={"gain": Y}), shape=(2,))
    assert observation_shape(seen) == (2,)


def test_a_bound_model_is_a_tree_of_arrays_that_scans_and_vmaps():
    """Conditions are leaves, the model's own structure is not: one compilation serves every row."""
    model, inputs = LogisticRegression(2), jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)), jnp.float32)
    traces = []

    @eqx.filter_jit
    def value(bound):
        traces.append(1)
        return bound.log_likelihood(X, jnp.ones(1))

    each = [value(bind(model, Conditions(inputs=u))) for u in inputs]
    assert len(traces) == 1
    together = jax.vmap(lambda u: bind(model, Conditions(inputs=u)).log_likelihood(X, jnp.ones(1)))(inputs)
    np.testing.assert_allclose(each, together, rtol=1e-6)
