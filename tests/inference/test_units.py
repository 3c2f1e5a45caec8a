"""Free of units: scale any unknown by 2^±20 and there are the same particles, scaled, bit for bit."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp
from jaxtyping import Array

import pfbr
from pfbr.inference.method import record
from pfbr.models.base import Model, StateSpaceModel

PLAIN, UNITS = jnp.ones(2), jnp.array([2.0**20, 2.0**-20])


class Scaled(Model):
    """Another model with each unknown in a unit of its own. Densities lack the constant of the change of units, so that
    every number that is computed is the same."""

    model: Model
    units: Array

    @property
    def dim(self):
        return self.model.dim

    def sample_prior(self, key):
        return self.units * self.model.sample_prior(key)

    def log_prior(self, x):
        return self.model.log_prior(x / self.units)

    def log_likelihood(self, x, observation):
        return self.model.log_likelihood(x / self.units, observation)

    def sample_observation(self, key, x):
        return self.model.sample_observation(key, x / self.units)


class ScaledMotion(Scaled, StateSpaceModel):
    def sample_transition(self, key, x):
        return self.units * self.model.sample_transition(key, x / self.units)


class Bent(Model):
    """A banana: bent, so that everything has to move."""

    dim: int = eqx.field(static=True, default=2)

    def sample_prior(self, key):
        return jax.random.normal(key, (2,))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x**2)

    def log_likelihood(self, x, observation):
        return -0.5 * ((observation[0] - x[0] - x[1] ** 2) / 0.3) ** 2

    def sample_observation(self, key, x):
        return (x[0] + x[1] ** 2)[None] + 0.3 * jax.random.normal(key, (1,))


class Turning(Bent, StateSpaceModel):
    """The same, turned a little and shaken between reports."""

    def sample_transition(self, key, x):
        c, s = jnp.cos(0.3), jnp.sin(0.3)
        return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1]]) + 0.2 * jax.random.normal(key, (2,))


STREAM = jnp.array([[0.8], [1.5], [-0.4]])
METHODS = {
    "auto": {"method": "auto"},
    "auto, nothing kept": {"method": "auto", "history": 0},
    "gaussian": {"method": "gaussian"},
    "collocation": {"method": "collocation"},
    "ibis": {"method": "ibis"},
}


def particles(model, **settings):
    method = pfbr.as_method(settings["method"], model, history=settings.get("history", 4), rows=3)
    return record(jax.random.key(1), method, model, STREAM, 64).particles


SLOW = ("auto, nothing kept", "collocation")


@pytest.mark.parametrize("name", [pytest.param(m, marks=pytest.mark.slow) if m in SLOW else m for m in METHODS])
def test_a_static_unknown_in_other_units(name):
    plain = particles(Scaled(Bent(), PLAIN), **METHODS[name])
    scaled = particles(Scaled(Bent(), UNITS), **METHODS[name])
    np.testing.assert_array_equal(scaled.points / UNITS, plain.points)
    np.testing.assert_array_equal(scaled.log_weights, plain.log_weights)
    assert np.std(plain.points) > 0.1


@pytest.mark.slow
def test_a_moving_unknown_in_other_units():
    plain = particles(ScaledMotion(Turning(), PLAIN), method="auto")
    scaled = particles(ScaledMotion(Turning(), UNITS), method="auto")
    np.testing.assert_array_equal(scaled.points / UNITS, plain.points)
    np.testing.assert_array_equal(scaled.log_weights, plain.log_weights)


class Turned(Scaled):
    """Coordinates turned and shifted."""

    shift: tuple[float, float] = eqx.field(static=True, default=(3.0, -7.0))
    angle: float = eqx.field(static=True, default=0.8)

    def _inner(self, x):
        c, s = np.cos(self.angle), np.sin(self.angle)
        return jnp.asarray([[c, s], [-s, c]], x.dtype) @ (x - jnp.asarray(self.shift, x.dtype))

    def _outer(self, x):
        c, s = np.cos(self.angle), np.sin(self.angle)
        return jnp.asarray([[c, -s], [s, c]], x.dtype) @ x + jnp.asarray(self.shift, x.dtype)

    def sample_prior(self, key):
        return self._outer(self.model.sample_prior(key))

    def log_prior(self, x):
        return self.model.log_prior(self._inner(x))

    def log_likelihood(self, x, observation):
        return self.model.log_likelihood(self._inner(x), observation)


@pytest.mark.slow
@pytest.mark.parametrize("history", [4, 0])
def test_turned_and_shifted_coordinates_have_the_same_posterior(history):
    """Means and squares over 64 keys, each with its own, on both sides: z < 5."""

    def moments(model, seed):
        method = pfbr.as_method("auto", model, history=history, rows=3)

        def one(key):
            last = jax.tree.map(lambda a: a[-1], record(key, method, model, STREAM, 256).particles)
            points = jax.vmap(model._inner)(last.points) if isinstance(model, Turned) else last.points
            weights = jnp.exp(last.log_weights)
            return jnp.concatenate([weights @ points, weights @ points**2])

        return np.asarray(jax.lax.map(eqx.filter_jit(one), jax.random.split(jax.random.key(seed), 64)), float)

    plain, turned = moments(Bent(), 2), moments(Turned(Bent(), PLAIN), 3)
    error = np.sqrt((plain.var(0, ddof=1) + turned.var(0, ddof=1)) / 64)
    assert np.all(np.abs(plain.mean(0) - turned.mean(0)) < 5 * error)
