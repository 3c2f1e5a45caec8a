"""NumPyro functions that several tests turn into models."""

import numpyro
from jax import numpy as jnp
from numpyro import distributions as dist


def of_row(x, y=None):
    """A regression of one row."""
    a = numpyro.sample("a", dist.Normal(1.0, 2.0))
    b = numpyro.sample("b", dist.Normal(0.0, 5.0).expand([3]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.5))
    numpyro.deterministic("mu", a + x @ b)
    numpyro.sample("y", dist.Normal(a + x @ b, sigma), obs=y)


def of_table(x, y=None):
    """The same for a table of rows."""
    a = numpyro.sample("a", dist.Normal(1.0, 2.0))
    b = numpyro.sample("b", dist.Normal(0.0, 5.0).expand([x.shape[-1]]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.5))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(a + x @ b, sigma), obs=y)


def groups(group, y=None):
    """A hierarchical prior: sites that depend on each other, in a plate that is not over rows; several values a row."""
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    tau = numpyro.sample("tau", dist.Exponential(2.0))
    share = numpyro.sample("share", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
    with numpyro.plate("groups", 4):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
    with numpyro.plate("sensors", 3):
        numpyro.sample("y", dist.Normal(theta[group], share), obs=y)


def init():
    numpyro.sample("level", dist.Normal(0.5, 2.0))
    numpyro.sample("slope", dist.Normal(0.0, 0.3))


def transition(x, dt, inputs):
    numpyro.sample("slope", dist.Normal(x["slope"], 0.1 * jnp.sqrt(dt)))
    numpyro.sample("level", dist.Normal(x["level"] + dt * x["slope"] + inputs, 0.5 * jnp.sqrt(dt)))


def emission(x, y=None):
    numpyro.sample("y", dist.Normal(x["level"], 0.7), obs=y)
