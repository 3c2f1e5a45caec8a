"""`from_numpyro` at its edge: what cannot be used is refused by the name of its site, with what to do."""

import subprocess
import sys

import numpy as np
import numpyro
import pytest
from jax import numpy as jnp
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan

import pfbr
from pfbr.errors import ModelError
from pfbr.models import from_numpyro
from tests.models.numpyro.functions import emission, init, of_row, transition


def normal(name, *, obs=None):
    return numpyro.sample(name, dist.Normal(0.0, 1.0), obs=obs)


def local(x, y=None):
    with numpyro.plate("rows", x.shape[0]):
        effect = normal("effect")
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)


def local_without_plate(x, y=None):
    effect = numpyro.sample("effect", dist.Normal(0.0, 1.0).expand([x.shape[0]]))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)


def last_axis(x, y=None):
    m = normal("m")
    with numpyro.plate("outputs", 3, dim=-2), numpyro.plate("rows", x.shape[0], dim=-1):
        numpyro.sample("y", dist.Normal(m, 1.0), obs=y)


def discrete(y=None):
    z = numpyro.sample("z", dist.Bernoulli(0.5))
    numpyro.sample("y", dist.Normal(z, 1.0), obs=y)


def improper(y=None):
    m = numpyro.sample("m", dist.ImproperUniform(dist.constraints.positive, (), ()))
    numpyro.sample("y", dist.Normal(m, 1.0), obs=y)


def optimised(y=None):
    numpyro.sample("y", dist.Normal(normal("m"), numpyro.param("noise", 1.0)), obs=y)


def factor(y=None):
    m = normal("m")
    numpyro.factor("extra", -(m**2))
    normal("y", obs=y)


def two_observed(y=None):
    m = normal("m")
    numpyro.sample("first", dist.Normal(m, 1.0), obs=y)
    numpyro.sample("second", dist.Normal(m, 1.0), obs=y)


def scanned(y=None):
    scan(lambda x, _: (numpyro.sample("x", dist.Normal(x, 1.0)), None), 0.0, None, length=3)
    normal("y", obs=y)


def subsampled(x, y=None):
    m = normal("m")
    with numpyro.plate("part", 10, subsample_size=3):
        numpyro.sample("y", dist.Normal(m, 1.0), obs=y)


def moving_support(y=None):
    top = numpyro.sample("top", dist.LogNormal(0.0, 1.0))
    part = numpyro.sample("part", dist.Uniform(0.0, top))
    numpyro.sample("y", dist.Normal(part, 1.0), obs=y)


def prior_from_inputs(x, y=None):
    m = numpyro.sample("m", dist.Normal(0.0, 1.0 + jnp.abs(x)))
    numpyro.sample("y", dist.Normal(m, 1.0), obs=y)


def nothing_unknown(y=None):
    normal("y", obs=y)


def nothing_observed(y=None):
    normal("m")


def anything(*args, y=None):
    normal("y", obs=y)


def broken(x, y=None):
    normal("y", obs=y + x["missing"])


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (local, "'effect' lies in the plate 'rows' over rows"),
        (local_without_plate, "'effect' lies in the plate 'rows' over rows"),
        (last_axis, "'rows' over rows must be the first axis of the observed site 'y'"),
        (discrete, r"'z' is a discrete unknown \(BernoulliProbs\). Sum it out"),
        (improper, "'m' has an improper prior"),
        (optimised, r"'noise' \(numpyro.param\) is one to optimise: give it a prior"),
        (factor, "the factor 'extra'"),
        (two_observed, "the sites 'first', 'second' are observed"),
        (scanned, "write `init`, `transition` and `emission`"),
        (subsampled, "the plate 'part' takes 3 of 10 rows"),
        (moving_support, "the support of the site 'part' depends on another unknown"),
        (prior_from_inputs, "the prior of the site 'm' depends on the inputs"),
        (nothing_unknown, "`nothing_unknown` has no latent site"),
        (nothing_observed, "no site of the NumPyro function takes `y`"),
        (anything, "must name its arguments"),
        (broken, "failed on an example"),
        (3.0, "must be a NumPyro function; got float"),
    ],
)
def test_it_is_refused_by_name(function, said):
    with pytest.raises(ModelError, match=said):
        from_numpyro(function)


def test_one_function_or_three():
    three = {"init": init, "transition": transition, "emission": emission}
    for wrong in ({}, {"function": of_row, **three}, {"init": init, "emission": emission}):
        with pytest.raises(ModelError, match="give one NumPyro function"):
            from_numpyro(**wrong)
    with pytest.raises(ModelError, match="every latent site is unknown"):
        from_numpyro(of_row, parameters=init)


def test_inputs_that_do_not_fit_are_refused():
    with pytest.raises(ModelError, match="rows along the first axis"):
        from_numpyro(of_row, inputs=3.0)
    with pytest.raises(ModelError, match="takes no argument but the observation"):
        from_numpyro(discrete_free, inputs=np.ones(3))
    with pytest.raises(ModelError, match="with the keys a, b"):
        from_numpyro(two_inputs, inputs=np.ones(3))


def discrete_free(y=None):
    numpyro.sample("y", dist.Normal(normal("m"), 1.0), obs=y)


def two_inputs(a, b, y=None):
    numpyro.sample("y", dist.Normal(normal("m") + a + b, 1.0), obs=y)


def test_a_function_that_cannot_do_without_an_observation():
    def table(y):
        m = normal("m")
        with numpyro.plate("rows", len(y)):
            numpyro.sample("y", dist.Normal(m, 1.0), obs=y)

    model = from_numpyro(table)
    assert model.rows.batched
    np.testing.assert_allclose(
        model.log_likelihood({"m": jnp.asarray(0.2)}, jnp.asarray(1.0)), dist.Normal(0.2, 1).log_prob(1.0), rtol=1e-6
    )


def test_numpyro_is_loaded_when_it_is_asked_for_and_named_where_it_is_missing():
    script = (
        "import sys, pfbr\n"
        "pfbr.models.GaussianMean(2)\n"
        "assert 'numpyro' not in sys.modules\n"
        "sys.modules['numpyro'] = None\n"
        "try:\n    pfbr.models.from_numpyro(print)\n"
        "except pfbr.errors.InputError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert 'pip install "pfbr[numpyro]"' in said.stdout
    assert isinstance(pfbr.models.from_numpyro(discrete_free), pfbr.Model)
