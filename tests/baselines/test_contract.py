"""Every rival is asked the same questions: one registry, one contract."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr import baselines
from pfbr.errors import InputError
from pfbr.inference.history import empty_history
from pfbr.inference.method import Stream, record, step_key
from pfbr.models import GaussianMean, LinearDynamics, LinearGaussian, LogisticRegression, Model
from pfbr.models.base import normal_log_density
from pfbr.particles.particles import weighted_cov, weighted_mean

SEEDS, STAGES, N = 16, 3, 64

# How far the mean (in standard deviations) and the variance (relative) may be off beyond noise, where a method is only
# nearly right with 64 particles, and why.
LEANING = {
    "smc-one-pass": (0.0, 0.1),  # nothing to renew, so only the bias of a weighted variance
    "sgld": (0.05, 0.1),  # steps of finite size widen by a share of ε/4
    "svgd": (0.05, 0.25),  # 64 particles sit closer together than draws would
    "pmd": (0.1, 0.4),  # every kernel density estimate widens
    "npv": (0.1, 0.4),  # round components and a second-order bound
    "kbr": (0.3, 0.6),  # regularised regression pulls towards the simulated pairs
    "kmcf": (0.3, 0.6),
    "svi": (0.05, 0.1),
    "svi-mean-field": (0.05, 0.1),
}


class Unseen(Model):
    """x ~ N((1, -1), diag(1, 4)); the observation is noise and says nothing about it."""

    dim: int = eqx.field(static=True, default=2, init=False)

    def sample_prior(self, key):
        return jnp.array([1.0, -1.0]) + jnp.array([1.0, 2.0]) * jax.random.normal(key, (2,))

    def log_prior(self, x):
        return normal_log_density(x, jnp.array([1.0, -1.0]), jnp.array([1.0, 2.0]))

    def log_likelihood(self, x, observation):
        return normal_log_density(observation, 0.0 * x[:1], 1.0)

    def sample_observation(self, key, x):
        return jax.random.normal(key, (1,))

    def linear_gaussian(self):
        eye, zero = jnp.eye(2), jnp.zeros((2, 2))
        return LinearGaussian(
            eye, zero, jnp.zeros((1, 2)), jnp.eye(1), jnp.array([1.0, -1.0]), jnp.diag(jnp.array([1.0, 4.0]))
        )


# Fewer steps and pairs than by default, where the questions do not depend on them and the answers take long.
SMALLER = {
    "kbr": baselines.KernelBayes(num_pairs=100),
    "kmcf": baselines.KernelFilter(num_pairs=100),
    "npv": baselines.NonparametricVI(components=8, steps=25, batch=4, capacity=4),
    "pmd": baselines.MirrorDescent(capacity=4),
}
STILL = Unseen()
MOVING = LinearDynamics(jnp.array([[0.9, 0.2], [0.0, 0.8]]), jnp.zeros((1, 2)))


# Left to the slow tests where a sibling asks the same question sooner (compilation is what costs): methods that differ
# from another of the list by one setting, and single steps whose operations are many, one by one.
SIBLINGS = {"smc-multinomial", "svi-mean-field", "aesmc-gru"}
SOON_UNCOMPILED = {"prior", "smc", "smc-one-pass", "enkf"}


def methods(slow):
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in baselines.REGISTRY]


def model_for(name):
    """The flat model that the method can do."""
    needs_motion = name.startswith("aesmc") or baselines.REGISTRY[name].ready(STILL).unsupported(STILL) is not None
    return MOVING if needs_motion else STILL


@pytest.fixture(scope="module", params=methods(SIBLINGS))
def run(request):
    """One compiled run of a method on 16 seeds, shared by all questions."""
    name, observations = request.param, jnp.array([[0.3], [-1.0], [0.8]])
    model = model_for(name)
    method = SMALLER.get(name) or baselines.make(name, model)
    keys = jax.random.split(jax.random.key(11), SEEDS)
    go = eqx.filter_jit(lambda ks: jax.vmap(lambda k: record(k, method, model, observations, N))(ks))
    return {
        "name": name,
        "model": model,
        "method": method,
        "observations": observations,
        "keys": keys,
        "go": go,
        "said": go(keys),
    }


def test_same_key_same_answer_and_other_key_other_answer(run):
    again, said = run["go"](run["keys"]), run["said"]
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(said), strict=True):
        np.testing.assert_array_equal(a, b)
    points = np.asarray(said.particles.points)
    assert not np.allclose(points[0], points[1])


def test_weights_are_normalised_and_info_holds_scalars(run):
    said = run["said"]
    assert said.particles.points.shape == (SEEDS, STAGES, N, 2)
    np.testing.assert_allclose(np.exp(said.particles.log_weights).sum(-1), 1.0, rtol=1e-4)
    assert all(value.shape == (SEEDS, STAGES) for _, value in said.info.items())


def test_state_keeps_its_structure(run):
    method, model, observation = run["method"], run["model"], run["observations"][0]
    key = jax.random.key(0)
    before = jax.eval_shape(lambda: method.init(key, model, N))
    after, _ = jax.eval_shape(lambda s: method.update(key, model, s, observation), before)
    assert jax.tree.structure(before) == jax.tree.structure(after)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


@pytest.mark.parametrize("run", methods(set(baselines.REGISTRY) - SOON_UNCOMPILED), indirect=True)
def test_jit_changes_nothing(run):
    """One step by itself, uncompiled, is the first stage of the compiled run."""
    method, model, key = run["method"], run["model"], run["keys"][0]
    state = method.init(step_key(key, 0), model, N)
    state, _ = method.update(step_key(key, 1), model, state, run["observations"][0])
    compiled = jax.tree.map(lambda leaf: leaf[0, 0], run["said"].particles)
    np.testing.assert_allclose(method.particles(state).points, compiled.points, rtol=2e-3, atol=2e-3)


def test_flat_likelihood_leaves_the_posterior_where_it_was(run):
    """Mean and variance over 16 seeds against the formula, z = 6, plus the lean that the method is known for."""
    if run["model"] is STILL:
        mean, var = np.array([1.0, -1.0]), np.array([1.0, 4.0])
    else:
        m, cov, A = np.zeros(2), np.eye(2), np.asarray(MOVING.A)
        for _ in range(STAGES):
            m, cov = A @ m, A @ cov @ A.T + np.eye(2)
        mean, var = m, np.diagonal(cov)
    mean_lean, var_lean = LEANING.get(run["name"], (0.0, 0.0))
    last = jax.tree.map(lambda leaf: leaf[:, -1], run["said"].particles)
    means = np.asarray(weighted_mean(last))
    variances = np.diagonal(np.asarray(weighted_cov(last)), axis1=1, axis2=2)
    slack = 6 * means.std(0, ddof=1) / SEEDS**0.5 + mean_lean * np.sqrt(var)
    assert np.all(np.abs(means.mean(0) - mean) < slack)
    slack = 6 * variances.std(0, ddof=1) / SEEDS**0.5 + var_lean * var
    assert np.all(np.abs(variances.mean(0) - var) < slack)


def test_bad_input_is_refused(run):
    method, model, key = run["method"], run["model"], jax.random.key(0)
    with pytest.raises(InputError, match="at least 2"):
        method.init(key, model, 1)
    state = jax.eval_shape(lambda: method.init(key, model, N))
    with pytest.raises(InputError, match="observation"):
        jax.eval_shape(lambda s: method.update(key, model, s, jnp.zeros(3)), state)


def test_a_model_that_a_method_cannot_do_is_refused_with_a_way_out(run):
    other = MOVING if run["model"] is STILL else STILL
    if run["method"].unsupported(other) is None:
        pytest.skip("does both kinds")
    with pytest.raises(InputError, match=r"use |train"):
        run["method"].init(jax.random.key(0), other, N)
    with pytest.raises(InputError):
        baselines.make(run["name"], other)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="prior"):
        baselines.make("sequential-monte-carlo", STILL)


def under_conditions(model):
    """A stream that the method's kind of model could meet: inputs, times and gaps."""
    labels, seen = jnp.zeros((3, 1)), jnp.array([[True], [False], [True]])
    if isinstance(model, LinearDynamics):
        moving = LinearDynamics(model.A, jnp.ones((1, 2)))
        return moving, Stream(labels, jnp.array([1.0, 0.0, 0.5]), None, seen)
    return LogisticRegression(2), Stream(labels, jnp.ones(3), jnp.ones((3, 2)), seen)


@pytest.mark.parametrize("name", baselines.REGISTRY)
def test_times_inputs_and_gaps_are_taken(name):
    """Traced, not computed: what comes with an observation reaches every method, and its state keeps its structure."""
    model, stream = under_conditions(model_for(name))
    method = SMALLER.get(name) or baselines.REGISTRY[name].ready(model)
    if name in ("kbr", "kmcf"):  # their pairs are simulated once
        assert "inputs" in method.unsupported(model)
        model, stream = GaussianMean(2), Stream(jnp.zeros((3, 2)), observed=jnp.array([[True, False]] * 3))
    assert method.unsupported(model) is None
    said = eqx.filter_eval_shape(lambda s: record(jax.random.key(0), method, model, s, N), stream)
    assert said.particles.points.shape == (3, N, 2)


@pytest.mark.parametrize(
    "build",
    [
        lambda: baselines.BootstrapSMC(resampling="residual"),
        lambda: baselines.BootstrapSMC(threshold=1.5),
        lambda: baselines.OnePassSMC(bandwidth=2.0),
        lambda: baselines.EnKF(inflation=0.5),
        lambda: baselines.IBIS(capacity=0),
        lambda: baselines.SGLD(step_size=0.0),
        lambda: baselines.DaumHuang(steps=0),
    ],
)
def test_bad_settings_are_refused(build):
    with pytest.raises(InputError):
        build()


def test_a_full_buffer_says_so():
    model = Unseen()
    full = empty_history(model, 1).append(model, jnp.ones(1))
    assert int(full.count) == 1
    with pytest.raises(RuntimeError, match="history"):
        full.append(model, jnp.zeros(1))
