"""A model at rest from a NumPyro function: the densities are NumPyro's own, the draws follow them, names are kept."""

import jax
import numpy as np
import numpyro
import pytest
from jax import numpy as jnp
from numpyro import distributions as dist
from numpyro.infer.util import potential_energy

import pfbr
from pfbr.models import from_numpyro
from pfbr.models.base import offers
from pfbr.models.checks import checked_methods_of
from pfbr.models.conditions import Conditions, bind, observation_shape
from pfbr.models.unknowns import Unknowns
from tests.models.numpyro.functions import groups, of_row, of_table

X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
ROW = jnp.asarray(X[0])


def bound(model, inputs):
    return bind(model, Conditions(inputs=jnp.asarray(inputs)))


@pytest.mark.parametrize(
    ("function", "table", "row", "y"),
    [
        (of_row, X, X[0], np.float32(0.3)),
        (of_table, X, X[0], np.float32(0.3)),
        (groups, np.arange(4), np.int32(2), np.array([0.1, 0.2, -0.4], np.float32)),
    ],
)
def test_the_density_of_the_free_numbers_is_the_one_that_numpyro_samples(function, table, row, y):
    model = checked_methods_of(from_numpyro(function, inputs=table))
    here = bound(model, row)
    unknowns = Unknowns.of(model)
    for seed in range(3):
        free = 0.7 * jax.random.normal(jax.random.key(seed), (model.dim,))
        pieces = {name: piece.reshape(part.free_shape) for name, part, piece in unknowns._pieces(free)}
        given = (row[None], y[None]) if model.rows.batched else (row, y)
        theirs = -potential_energy(function, given[:1], {"y": given[1]}, pieces)
        ours = here.log_prior(free) + here.log_likelihood(free, jnp.asarray(y))
        np.testing.assert_allclose(ours, theirs, rtol=2e-5)
        np.testing.assert_allclose(unknowns.unconstrain(unknowns.constrain(free)), free, atol=2e-5)


def test_names_shapes_and_scales_are_the_functions_own():
    for function, batched in ((of_row, False), (of_table, True)):
        model = from_numpyro(function, inputs=X)
        assert model.rows.batched is batched
        assert {name: part.shape for name, part in model.unknowns.items()} == {"a": (), "b": (3,), "sigma": ()}
        assert observation_shape(model) == ()
        drawn = jax.vmap(model.sample_prior)(jax.random.split(jax.random.key(0), 4000))
        # standard errors at 4000 draws: 0.03, 0.08; five of them are allowed
        np.testing.assert_allclose(np.mean(drawn["a"]), 1.0, atol=0.16)
        np.testing.assert_allclose(np.std(drawn["b"], axis=0), 5.0, atol=0.3)
        assert (np.asarray(drawn["sigma"]) > 0).all()
        np.testing.assert_allclose(np.mean(drawn["sigma"]), 1.5 * np.sqrt(2 / np.pi), atol=0.08)
        np.testing.assert_array_equal(model.sample_inputs(jax.random.key(1)).shape, (3,))
        assert any(np.array_equal(model.sample_inputs(jax.random.key(1)), row) for row in X)


def test_normals_make_the_prior_where_it_is_made_of_them():
    def plain(y=None):
        b = numpyro.sample("b", dist.Normal(jnp.array([1.0, 2.0]), 3.0).to_event(1))
        s = numpyro.sample("s", dist.LogNormal(0.5, 0.2).expand([2]))
        m = numpyro.sample("m", dist.MultivariateNormal(b, jnp.array([[2.0, 0.5], [0.5, 1.0]])))
        numpyro.sample("y", dist.Normal(b[0] + m[1], s[0]), obs=y)

    model = from_numpyro(plain)
    z = jnp.array([0.1, -0.2, 0.3, 0.4, 1.0, -1.0])
    assert offers(model, "prior_from_normal")
    made = model.prior_from_normal(z)
    b = np.array([1.3, 1.4])
    np.testing.assert_allclose(made["b"], b, rtol=1e-6)
    np.testing.assert_allclose(made["s"], np.exp(0.5 + 0.2 * np.array([0.3, 0.4])), rtol=1e-6)
    root = np.linalg.cholesky([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(made["m"], b + root @ [1.0, -1.0], rtol=1e-5)
    assert not offers(from_numpyro(of_row, inputs=X), "prior_from_normal")  # a half normal is not


def test_gaps_leave_components_out_where_they_are_independent():
    def plain(y=None):
        m = numpyro.sample("m", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.LogNormal(jnp.stack([m, 2 * m]), 1.0).to_event(1), obs=y)

    def together(y=None):
        m = numpyro.sample("m", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.MultivariateNormal(jnp.stack([m, m]), jnp.eye(2)), obs=y)

    model = from_numpyro(plain)
    y = jnp.array([1.5, 0.0])  # the second is what stands for a gap, and lies outside of the support
    seen = bind(model, Conditions(observed=jnp.array([True, False])))
    x = jnp.array([0.3])
    value, score = jax.value_and_grad(seen.log_likelihood)(x, y)
    np.testing.assert_allclose(value, dist.LogNormal(0.3, 1.0).log_prob(1.5), rtol=1e-6)
    np.testing.assert_allclose(score, [np.log(1.5) - 0.3], rtol=1e-5)
    all_of_it = bind(model, Conditions(observed=jnp.array([True, True])))
    assert all_of_it.log_likelihood(x, y) == -jnp.inf  # seen, and impossible
    trace = pfbr.run(model, [[1.5, np.nan], [np.nan, np.nan]], method="ibis", num_particles=16)
    assert trace.info.log_predictive[1] == 0
    with pytest.raises(pfbr.errors.InputError, match="one number for all of them"):
        pfbr.run(from_numpyro(together), [[1.5, np.nan]], method="ibis", num_particles=16)


def test_counts_and_labels_are_observed_as_whole_numbers():
    def label(x, y=None):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([3, 2]).to_event(2))
        numpyro.sample("y", dist.Categorical(logits=w @ x), obs=y)

    def count(y=None):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        numpyro.sample("y", dist.Poisson(rate), obs=y)

    model = from_numpyro(label, inputs=X[:, :2])
    w = {"w": jnp.asarray(X[:3, :2])}
    logits = X[:3, :2] @ X[0, :2]
    found = model.log_likelihood(w, jnp.asarray(2.0), inputs=jnp.asarray(X[0, :2]))
    np.testing.assert_allclose(found, jax.nn.log_softmax(logits)[2], rtol=1e-5)
    assert model.log_likelihood(w, jnp.asarray(3.0), inputs=jnp.asarray(X[0, :2])) == -jnp.inf
    assert model.sample_observation(jax.random.key(0), w, inputs=jnp.asarray(X[0, :2])).dtype == jnp.float32
    model = from_numpyro(count)
    found = model.log_likelihood({"rate": jnp.asarray(1.7)}, jnp.asarray(3.0))
    np.testing.assert_allclose(found, 3 * np.log(1.7) - 1.7 - np.log(6), rtol=1e-5)


def test_several_inputs_are_a_dict_and_other_arguments_keep_their_defaults():
    def two(age, dose=None, y=None, scale=2.0):
        b = numpyro.sample("b", dist.Normal(0.0, scale))
        numpyro.sample("y", dist.Normal(b * age + dose, 1.0), obs=y)

    model = from_numpyro(two, inputs={"age": np.ones(5), "dose": np.ones(5)})
    found = model.log_likelihood({"b": jnp.asarray(2.0)}, jnp.asarray(3.0), inputs={"age": 1.0, "dose": 1.0})
    np.testing.assert_allclose(found, dist.Normal(0, 1).log_prob(0.0))
    np.testing.assert_allclose(model.log_prior({"b": jnp.asarray(2.0)}), dist.Normal(0, 2).log_prob(2.0))


def test_shapes_that_differ_from_those_at_the_start_are_refused_by_name():
    def late(x, y=None):
        b = numpyro.sample("b", dist.Normal(0.0, 1.0).expand(jnp.shape(x)))
        numpyro.sample("y", dist.Normal(jnp.sum(b * x), 1.0), obs=y)

    model = from_numpyro(late)  # one number, as long as nobody says otherwise
    with pytest.raises(pfbr.errors.ModelError, match=r"'b' had shape \(\) when .* has \(2,\) with this row"):
        model.log_likelihood({"b": jnp.asarray(0.3)}, jnp.asarray(1.0), inputs=jnp.ones(2))
    assert from_numpyro(late, inputs=np.ones((4, 2))).dim == 2


@pytest.mark.slow
def test_the_posterior_is_the_one_of_nuts_on_the_same_function():
    """60 rows, 1024 particles against 4000 draws of NUTS: errors below 0.15 of a posterior standard deviation, which
    is five times the standard error of both together."""
    from numpyro.infer import MCMC, NUTS

    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    y = 1 + x @ [1.0, -2.0, 0.5] + 0.7 * rng.standard_t(5, size=60)
    chains = MCMC(NUTS(of_table), num_warmup=500, num_samples=4000, progress_bar=False)
    chains.run(jax.random.key(0), x, y)
    truth = chains.get_samples()
    found = pfbr.run(from_numpyro(of_table, inputs=x), y, inputs=x, num_particles=1024)[-1]
    for name in ("a", "b", "sigma"):
        mean, std = np.mean(truth[name], axis=0), np.std(truth[name], axis=0)
        np.testing.assert_allclose((found.mean()[name] - mean) / std, 0, atol=0.15)
        np.testing.assert_allclose(found.std()[name] / std, 1, atol=0.12)
