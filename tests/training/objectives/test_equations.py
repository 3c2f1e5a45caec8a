"""The continuity equation at points of a cloud: zero where the flow is exact, and the same by the velocity itself."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.velocities import EquivariantVelocity
from pfbr.particles.whitening import whitening_of
from pfbr.training.general.rollout import ess_share, roll
from pfbr.training.objectives.equations import equations, loss, residuals, usable
from pfbr.training.problems.kinds import gaussian, wave
from pfbr.training.problems.problem import NORMAL, draw_problem
from tests.weights import filled

KINDS = (gaussian, wave)


def a_problem(kind):
    """A normal prior, nothing seen before, one new observation, and a cloud with exactly the moments of the prior."""
    problem = draw_problem(jax.random.key(3), 2, jnp.array([kind]))
    off = jnp.zeros_like(problem.old.on)
    problem = eqx.tree_at(
        lambda p: (p.prior.shape, p.old.on, p.new.on), problem, (jnp.asarray(NORMAL), off, jnp.array([1.0, 0.0]))
    )
    cloud = jax.random.normal(jax.random.key(4), (48, 2))
    return problem, whitening_of(cloud).whiten(cloud)


def test_a_normal_cloud_under_a_linear_observation_is_solved_without_training(x64):
    problem, cloud = a_problem(0)
    untrained = EquivariantVelocity(jax.random.key(0))

    @jax.jit
    def told(cloud):
        found = equations(KINDS, problem, jnp.zeros(()), cloud, 10)
        rolled, stayed = (roll(v, KINDS, problem, cloud, 32) for v in (untrained, None))
        shares = ess_share(rolled.log_weights[-1]), ess_share(stayed.log_weights[-1])
        return usable(found), residuals(untrained, found), loss(untrained, found), rolled.shares, shares

    fine, left, lowest, shares, (flowed, weighed) = told(cloud)
    assert bool(fine)
    np.testing.assert_allclose(left, 0, atol=1e-9)
    np.testing.assert_allclose(lowest, 0, atol=1e-9)
    np.testing.assert_allclose(shares[-1], 1)
    assert flowed > 0.999
    assert weighed < 0.98


def test_residuals_are_those_of_the_velocity(x64):
    """What was computed once, with the network put in, is ∇·v + v·∇ log q_t + ℓ of the velocity as it is used."""
    problem, cloud = a_problem(1)
    velocity = filled(0, lambda: EquivariantVelocity(jax.random.key(0)), scale=0.5)
    share = jnp.asarray(0.4)

    @jax.jit
    def both(cloud):
        new = jax.vmap(jax.value_and_grad(lambda x: problem.log_new(KINDS, x)))
        value, divergence = velocity.field(cloud[:7], cloud, None, new, jnp.arange(7))
        density = lambda x: problem.log_before(KINDS, x) + share * problem.log_new(KINDS, x)
        whole = divergence + jnp.sum(value * jax.vmap(jax.grad(density))(cloud[:7]), axis=1) + new(cloud[:7])[0]
        return whole - jnp.median(whole), residuals(velocity, equations(KINDS, problem, share, cloud, 7))

    expected, found = both(cloud)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert np.max(np.abs(expected)) > 1e-2
