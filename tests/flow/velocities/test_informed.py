"""The informed velocity: its divergence, the factor that it learns, and what it does to sets that know already."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.flow.settings import FlowSettings
from pfbr.flow.velocities.affine import AffineVelocity
from pfbr.flow.velocities.informed import FIRST_WIDTH, GAIN, InformedVelocity
from pfbr.inference.operator import Operator
from pfbr.models import MiniBatch
from pfbr.paper.digits.model import LabelledRows
from pfbr.particles.particles import equally_weighted
from pfbr.particles.qmc import draw_prior

KEY = jax.random.key(0)


def _weights(v: InformedVelocity):
    return v.centre, v.centre_from_batch, v.root, v.log_power, v.power_from_batch


@pytest.fixture(scope="module")
def velocity() -> InformedVelocity:
    """One whose every weight is set, as after training."""
    fresh = InformedVelocity(KEY, 3, (4, 4), width=8)
    keys = iter(jax.random.split(jax.random.key(1), 10))
    return eqx.tree_at(
        _weights,
        fresh,
        (
            jnp.array([0.3, -0.1, 0.2]),
            0.1 * jax.random.normal(next(keys), (8, 3)),
            0.1 * jax.random.normal(next(keys), (3, 3)),
            jnp.array(-0.2),
            0.1 * jax.random.normal(next(keys), (8,)),
        ),
    )


def test_the_divergence_of_the_informed_velocity_is_the_trace_of_its_jacobian(velocity):
    likelihood = Likelihood(MiniBatch(LabelledRows(3), 4), jax.random.normal(KEY, (4, 4)).at[:, 3].set(1.0))
    support = jax.random.normal(KEY, (30, 3)) @ jnp.diag(jnp.array([1.0, 2.0, 0.5]))

    @jax.jit
    def compared(points):
        context = velocity.prepare(KEY, support, likelihood)

        def field(x):
            return velocity(jnp.array(0.3), x[None], support, context, likelihood)[0][0]

        _, divergence = velocity(jnp.array(0.3), points, support, context, likelihood)
        return context.informed.precision, divergence, jax.vmap(lambda x: jnp.trace(jax.jacfwd(field)(x)))(points)

    precision, divergence, traces = compared(support[:5] + 0.1)
    assert float(jnp.trace(precision)) > 1  # the factor is at work
    assert np.allclose(divergence, traces, rtol=1e-4)


@pytest.mark.slow
def test_a_flat_batch_leaves_the_product_of_prior_and_factor(velocity):
    """Features of zero say nothing: N(0, I) times the factor is Gaussian, with mean and covariance in closed form."""
    model = MiniBatch(LabelledRows(3), 4)
    flat = Likelihood(model, jnp.zeros((4, 4)))
    operator = Operator(velocity, FlowSettings(steps=24))
    points = draw_prior(KEY, model, 256)
    informed = velocity.factor(points, flat)
    moved = operator.move(KEY, equally_weighted(points, jax.vmap(model.log_prior)(points)), flat)
    covariance = np.linalg.inv(np.eye(3) + informed.precision)
    assert np.allclose(moved.points.mean(0), covariance @ informed.precision @ informed.centre, atol=2e-3)
    assert np.allclose(np.cov(moved.points.T, bias=True), covariance, atol=2e-3)
    change = moved.log_density - jax.vmap(model.log_prior)(points)  # an affine map: the same for every particle
    assert np.allclose(change, -0.5 * np.linalg.slogdet(covariance)[1], atol=2e-3)


def test_what_the_particles_know_is_not_counted_again(velocity):
    """A set as narrow as the factor is moved by the likelihood alone, with the learned power."""
    model = MiniBatch(LabelledRows(3), 4)
    batch = jax.random.normal(KEY, (4, 4)).at[:, 3].set(1.0)
    likelihood = Likelihood(model, batch)
    narrow = 0.02 * draw_prior(KEY, model, 64)
    informed = eqx.filter_jit(velocity.factor)(narrow, likelihood)
    assert np.all(informed.precision == 0)
    untouched = eqx.tree_at(lambda v: _weights(v)[3:], velocity, (jnp.zeros(()), jnp.zeros(8)))

    @eqx.filter_jit
    def at_once(v):
        return v(jnp.array(0.3), narrow, narrow, v.prepare(KEY, narrow, likelihood), likelihood)

    ways = [at_once(v) for v in (untouched, AffineVelocity())]
    assert np.allclose(ways[0][0], ways[1][0], atol=1e-6)
    assert np.allclose(ways[0][1], ways[1][1], atol=1e-5)


def test_an_untrained_factor_pulls_towards_zero():
    fresh = InformedVelocity(KEY, 3, (4, 4))
    points = draw_prior(KEY, LabelledRows(3), 64)
    informed = fresh.factor(points, Likelihood(MiniBatch(LabelledRows(3), 4), jnp.zeros((4, 4))))
    assert np.allclose(informed.centre, 0)
    share = 1 - FIRST_WIDTH**2  # 1 − 1/ρ for a set of unit covariance
    assert np.allclose(informed.precision, share * np.eye(3) / FIRST_WIDTH**2, rtol=1e-3)
    assert float(informed.power) == 1.0
    assert GAIN > 0
    with pytest.raises(InputError, match="MiniBatch"):
        InformedVelocity(KEY, 3, (4,))
