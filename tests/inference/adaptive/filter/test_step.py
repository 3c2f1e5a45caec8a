"""A filter over a few reports: units, gaps, no time between two reports, what a step says about itself."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.inference.adaptive.method import Adaptive
from pfbr.inference.info import Move
from pfbr.inference.method import Stream, record
from pfbr.models.base import StateSpaceModel
from pfbr.models.conditions import Conditions, bind

T, N = 10, 64


class Pendulum(StateSpaceModel):
    """An angle and its speed, its sine seen; both in units of their own, powers of two."""

    units: jax.Array = eqx.field(default_factory=lambda: jnp.ones(2))

    @property
    def dim(self):
        return 2

    def prior_from_normal(self, z):
        return jnp.array([0.8, 0.5]) * z * self.units

    def sample_prior(self, key):
        return self.prior_from_normal(jax.random.normal(key, (2,)))

    def log_prior(self, x):
        return -0.5 * jnp.sum((x / self.units / jnp.array([0.8, 0.5])) ** 2)

    def transition_from_normal(self, x, z, *, dt):
        angle, speed = x / self.units
        speed = speed - 0.3 * dt * jnp.sin(angle) + 0.3 * jnp.sqrt(dt) * z[1]
        return jnp.stack([angle + 0.3 * dt * speed + 0.05 * jnp.sqrt(dt) * z[0], speed]) * self.units

    def sample_transition(self, key, x, *, dt):
        return self.transition_from_normal(x, jax.random.normal(key, (2,)), dt=dt)

    def log_likelihood(self, x, observation):
        return -0.5 * ((observation - jnp.sin(x[:1] / self.units[:1])) / 0.05) ** 2

    def sample_observation(self, key, x):
        return jnp.sin(x[:1] / self.units[:1]) + 0.05 * jax.random.normal(key, (1,))


@pytest.fixture(scope="module")
def ran():
    """By units: the same stream with a gap at report 3 and no time before report 6."""
    rng = np.random.default_rng(0)
    observations = np.sin(0.5 * np.sin(0.5 * np.arange(T)))[:, None] + 0.05 * rng.standard_normal((T, 1))
    dt = jnp.ones(T).at[6].set(0.0)
    observed = jnp.ones((T, 1), bool).at[3].set(False)
    stream = Stream(jnp.asarray(observations, jnp.float32), dt, None, observed)
    run = lambda units: record(jax.random.key(1), Adaptive(), Pendulum(jnp.asarray(units)), stream, N)
    return {name: run(units) for name, units in {"plain": [1.0, 1.0], "other": [2.0**20, 2.0**-20]}.items()}


def test_another_unit_changes_that_unknown_and_no_bit_of_anything_else(ran):
    plain, other = ran["plain"], ran["other"]
    np.testing.assert_array_equal(other.particles.points, plain.particles.points * jnp.array([2.0**20, 2.0**-20]))
    np.testing.assert_array_equal(other.particles.log_weights, plain.particles.log_weights)
    np.testing.assert_array_equal(other.info.move, plain.info.move)


def test_a_gap_adds_nothing(ran):
    info = ran["plain"].info
    assert info.move[3] == Move.NONE
    assert info.log_predictive[3] == 0
    assert not bool(info.flagged[3])


def test_without_time_nothing_moves_but_by_the_observation(ran):
    """Report 6 came at the time of report 5: if it was weighed, the particles are where they were."""
    points, move = ran["plain"].particles.points, ran["plain"].info.move
    assert move[6] != Move.WEIGHED or bool(jnp.all(points[6] == points[5]))
    spread = jnp.std(points, axis=1)
    assert bool(jnp.all(spread[6] <= 1.2 * spread[5]))


def test_a_step_says_what_it_did_and_how_sure_it_is(ran):
    info = ran["plain"].info
    error = np.asarray(info.details["error"])
    assert np.all((error > 0.05) & (error < 0.5)), "of 64 particles"
    assert np.all(np.asarray(info.details["beyond"]) <= 1)
    assert not np.any(info.flagged)
    assert np.all(np.asarray(info.ess) > 1)
    assert np.all(np.isfinite(info.log_evidence))


def test_weighing_alone_is_the_step_where_it_is_enough():
    """From the prior: a vague report is weighed, a sharp one far away is not."""
    method = Adaptive()
    under = lambda units, dt: bind(
        Pendulum(jnp.full(2, units)), Conditions(dt=jnp.asarray(dt), observed=jnp.ones(1, bool)), shape=(1,)
    )
    model, wide = under(1.0, 1.0), under(64.0, 0.01)  # angles so small that all particles agree
    state = method.init(jax.random.key(0), model, N)
    update, weigh = eqx.filter_jit(method.update), eqx.filter_jit(method.weigh)
    key, y = jax.random.key(1), jnp.zeros(1)
    tried, said, enough = weigh(key, wide, state, y)
    assert bool(enough)
    after, info = update(key, wide, state, y)
    np.testing.assert_allclose(tried.cloud.points, after.cloud.points, rtol=1e-5)
    np.testing.assert_allclose(tried.cloud.log_weights, after.cloud.log_weights, rtol=1e-4)
    assert said.log_predictive == pytest.approx(float(info.log_predictive), rel=1e-4)
    assert said.move == info.move
    assert not bool(weigh(key, model, state, jnp.array([3.0]))[2])
