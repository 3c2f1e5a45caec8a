"""Models that others are made of by changing one method, and what is done with each."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

import pfbr
from tests.attack.case import Case, accepted, refused

GROUP = "model faults"
ONE_X = np.zeros(2)


class Static(pfbr.Model):
    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x**2) - jnp.log(2 * jnp.pi)

    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum((observation - x) ** 2) - jnp.log(2 * jnp.pi)

    def sample_observation(self, key, x):
        return x + jax.random.normal(key, (2,))


class Mute(pfbr.Model):
    """Cannot draw observations: their shape is known with the first one."""

    dim: int = eqx.field(static=True, default=2)
    sample_prior = Static.sample_prior
    log_prior = Static.log_prior
    log_likelihood = Static.log_likelihood


class Moving(pfbr.StateSpaceModel):
    dim: int = eqx.field(static=True, default=2)
    sample_prior = Static.sample_prior
    log_prior = Static.log_prior
    log_likelihood = Static.log_likelihood
    sample_observation = Static.sample_observation

    def sample_transition(self, key, x):
        return 0.9 * x + jax.random.normal(key, (2,))

    def log_transition(self, x_next, x):
        return -0.5 * jnp.sum((x_next - 0.9 * x) ** 2) - jnp.log(2 * jnp.pi)


class Driven(Moving):
    """Needs inputs, and cannot draw them."""

    def log_likelihood(self, x, observation, *, inputs):
        return -0.5 * jnp.sum((observation - x - inputs) ** 2)


class Named(pfbr.Model):
    unknowns = {"beta": (2,), "sigma": pfbr.positive}  # noqa: RUF012 - as users write it

    def sample_prior(self, key):
        a, b = jax.random.split(key)
        return {"beta": jax.random.normal(a, (2,)), "sigma": jnp.exp(jax.random.normal(b))}

    def log_prior(self, x):
        return -0.5 * jnp.sum(x["beta"] ** 2) - 0.5 * jnp.log(x["sigma"]) ** 2 - jnp.log(x["sigma"])

    def log_likelihood(self, x, observation):
        return -0.5 * jnp.sum(((observation - x["beta"]) / x["sigma"]) ** 2) - 2 * jnp.log(x["sigma"])

    def sample_observation(self, key, x):
        return x["beta"] + x["sigma"] * jax.random.normal(key, (2,))


class Learning(Moving):
    """Parameters beside the state."""

    def sample_parameters(self, key):
        return {"rate": jax.random.uniform(key)}

    def log_parameters(self, params):
        return jnp.where((params["rate"] > 0) & (params["rate"] < 1), 0.0, -jnp.inf)

    def sample_transition(self, key, x, *, params):
        return params["rate"] * x + jax.random.normal(key, (2,))

    def log_transition(self, x_next, x, *, params):
        return -0.5 * jnp.sum((x_next - params["rate"] * x) ** 2)


def changed(base: type = Static, /, **parts: Any) -> Any:
    """An instance of a class with some of its methods, or fields, replaced."""
    return type("Changed", (base,), {"__module__": __name__, **parts})()


def used(model: Any, observation: Any = ONE_X, **given: Any) -> None:
    """What a user does with a model; what is refused is refused before anything is compiled."""
    pfbr.Session(model, num_particles=16).update(observation, **given)


def tried(name: str, build: Callable[[], Any], says: str, observation: Any = ONE_X, **given: Any) -> Case:
    return refused(GROUP, name, lambda: used(build(), observation, **given), says)


def passes(name: str, build: Callable[[], Any]) -> Case:
    return accepted(GROUP, name, lambda: pfbr.Session(build(), num_particles=16))


def fail(error: BaseException) -> Any:
    raise error
