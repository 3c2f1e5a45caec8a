"""Three NumPyro functions as a state-space model: densities, draws, what they name, and Kalman's posterior."""

import jax
import numpy as np
import numpyro
import pytest
from jax import numpy as jnp
from numpyro import distributions as dist

import pfbr
from pfbr.errors import ModelError
from pfbr.inference.method import Stream
from pfbr.metrics.truth import kalman
from pfbr.models import LinearGaussian, from_numpyro
from pfbr.models.base import has_parameters, offers
from pfbr.models.checks import checked_methods_of
from pfbr.models.needs import needs
from tests.models.numpyro.functions import emission, init, transition

THREE = {"init": init, "transition": transition, "emission": emission}


class Same(pfbr.StateSpaceModel):
    """The three functions in matrices: level, slope."""

    dim: int = 2

    def sample_prior(self, key):
        return jnp.zeros(2)

    def log_prior(self, x):
        return jnp.zeros(())

    def sample_transition(self, key, x):
        return x

    def log_likelihood(self, x, observation):
        return jnp.zeros(())

    def linear_gaussian(self, *, dt, inputs):
        moved = jnp.array([[1.0, 0.0], [0.0, 1.0]]).at[0, 1].set(dt)
        noise = dt * jnp.diag(jnp.array([0.25, 0.01]))
        begun = jnp.array([0.5, 0.0]), jnp.diag(jnp.array([4.0, 0.09]))
        push = jnp.stack([inputs, jnp.zeros(())])
        return LinearGaussian(moved, noise, jnp.array([[1.0, 0.0]]), jnp.array([[0.49]]), *begun, a=push)


def test_what_the_functions_name_is_what_the_model_needs():
    model = from_numpyro(**THREE)
    assert needs(model, "sample_transition") == needs(model, "log_transition") == ("dt", "inputs")
    assert needs(model, "log_likelihood") == needs(model, "sample_prior") == ()
    assert list(model.unknowns) == ["level", "slope"]
    assert offers(model, "log_transition")
    assert offers(model, "transition_from_normal")
    assert not has_parameters(model)
    checked_methods_of(from_numpyro(**THREE, inputs=np.ones(3)))


def test_densities_and_draws():
    model = from_numpyro(**THREE)
    x, after = {"level": jnp.asarray(1.0), "slope": jnp.asarray(0.2)}, {"level": 2.0, "slope": 0.1}
    after = {name: jnp.asarray(value) for name, value in after.items()}
    given = {"dt": jnp.asarray(4.0), "inputs": jnp.asarray(0.5)}
    expected = dist.Normal(0.2, 0.2).log_prob(0.1) + dist.Normal(1 + 0.8 + 0.5, 1.0).log_prob(2.0)
    np.testing.assert_allclose(model.log_transition(after, x, **given), expected, rtol=1e-6)
    np.testing.assert_allclose(
        model.log_prior(x), dist.Normal(0.5, 2).log_prob(1.0) + dist.Normal(0, 0.3).log_prob(0.2), rtol=1e-6
    )
    np.testing.assert_allclose(model.log_likelihood(x, jnp.asarray(1.5)), dist.Normal(1, 0.7).log_prob(1.5), rtol=1e-6)
    # the normals stand in the order of the unknowns, whatever the order of the sites in `transition`
    made = model.transition_from_normal(x, jnp.array([1.0, -1.0]), **given)
    np.testing.assert_allclose([made["level"], made["slope"]], [2.3 + 1.0, 0.2 - 0.2], atol=1e-6)
    drawn = jax.vmap(lambda k: model.sample_transition(k, x, **given))(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(np.mean(drawn["level"]), 2.3, atol=0.08)  # five standard errors
    np.testing.assert_allclose(np.std(drawn["slope"]), 0.2, atol=0.012)


def test_kalman_has_the_same_posterior():
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=6)).astype(np.float32)
    y[3] = np.nan
    times, pushes = np.array([0.5, 1.5, 1.75, 4.0, 4.5, 5.0]), rng.normal(size=6).astype(np.float32)
    trace = pfbr.run(from_numpyro(**THREE), y, times=times, inputs=pushes, method="gaussian", num_particles=256)
    dt = jnp.asarray(np.diff(times, prepend=0.0), jnp.float32)
    seen = ~np.isnan(y)[:, None]
    rows = Stream(jnp.asarray(np.where(seen, y[:, None], 0)), dt, jnp.asarray(pushes), jnp.asarray(seen))
    truth = kalman(Same(), rows)
    found = np.stack([trace.mean()["level"], trace.mean()["slope"]], axis=-1)
    np.testing.assert_allclose(found, truth.mean, atol=0.03)
    np.testing.assert_allclose(trace.cov(), truth.cov, atol=0.05)
    assert trace.info.log_predictive is None or trace.info.log_predictive[3] == 0


def test_what_is_computed_has_no_density_and_parameters_are_given():
    def start():
        numpyro.sample("place", dist.Normal(0.0, 1.0))
        numpyro.sample("speed", dist.LogNormal(0.0, 1.0))

    def move(x, params, dt):
        noise = numpyro.sample("noise", dist.Normal(0.0, 1.0))
        numpyro.deterministic("speed", x["speed"] * jnp.exp(jnp.exp(params["log_noise"]) * noise))
        numpyro.deterministic("place", x["place"] + dt * x["speed"])

    def known():
        numpyro.sample("log_noise", dist.Normal(-1.0, 0.5))

    def seen(x, y=None):
        numpyro.sample("y", dist.StudentT(4.0, x["place"], 1.0), obs=y)

    model = checked_methods_of(from_numpyro(init=start, transition=move, emission=seen, parameters=known))
    assert not offers(model, "log_transition")
    assert has_parameters(model)
    x, params = {"place": jnp.asarray(1.0), "speed": jnp.asarray(2.0)}, model.sample_parameters(jax.random.key(0))
    moved = model.sample_transition(jax.random.key(1), x, params=params, dt=jnp.asarray(0.5))
    assert moved["place"] == 2.0
    assert moved["speed"] != 2.0
    np.testing.assert_allclose(
        model.log_parameters(params), dist.Normal(-1, 0.5).log_prob(params["log_noise"]), rtol=1e-6
    )

    def narrow():
        numpyro.sample("noise", dist.HalfNormal(1.0))

    with pytest.raises(ModelError, match="'noise' is constrained"):
        from_numpyro(init=start, transition=move, emission=seen, parameters=narrow)
    with pytest.raises(ModelError, match="`transition` names `params`"):
        from_numpyro(init=start, transition=move, emission=seen)


@pytest.mark.parametrize(
    ("part", "function", "said"),
    [
        ("transition", lambda x: numpyro.sample("level", dist.Normal(0, 1)), "no site 'slope'"),
        ("transition", lambda: None, r"must take \(x\) first"),
        ("transition", lambda x, delta: None, "names `delta`, and nobody can give it that"),
        ("emission", lambda x, y=None: numpyro.sample("z", dist.Normal(0, 1)), "takes `y` as its observation"),
        ("init", lambda: None, "no latent site"),
        ("init", lambda dt: None, "`init` names `dt`, which is not given there"),
    ],
)
def test_functions_that_do_not_fit_are_refused_by_name(part, function, said):
    with pytest.raises(ModelError, match=said):
        from_numpyro(**{**THREE, part: function})


def test_a_state_that_changes_its_support_and_latent_emissions_are_refused():
    def wide(x, dt, inputs):
        numpyro.sample("level", dist.LogNormal(0.0, 1.0))
        numpyro.sample("slope", dist.Normal(0.0, 1.0))

    def noisy(x, y=None):
        numpyro.sample("y", dist.Normal(x["level"], numpyro.sample("noise", dist.HalfNormal(1.0))), obs=y)

    with pytest.raises(ModelError, match="the support of the site 'level' depends on where `init` has it"):
        from_numpyro(**{**THREE, "transition": wide})
    with pytest.raises(ModelError, match="'noise' of `emission` is latent"):
        from_numpyro(**{**THREE, "emission": noisy})
