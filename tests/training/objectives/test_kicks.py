"""What a kick leaves of the weights: nothing where the affine flow is exact, and the same by the flow itself."""

import equinox as eqx
import jax
import numpy as np
from jax import numpy as jnp

from pfbr.flow.velocities import EquivariantVelocity
from pfbr.particles.whitening import whitening_of
from pfbr.training.general.rollout import ess_share, roll
from pfbr.training.objectives.kicks import log_weights, loss, usable
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
        rolled = roll(untrained, KINDS, problem, cloud, 3, chosen=jnp.arange(10))
        weighed = jax.vmap(lambda x: problem.log_new(KINDS, x))(cloud)
        lowest = jax.vmap(lambda lesson: loss(log_weights(KINDS, untrained, lesson)))(rolled.lessons)
        return jax.vmap(usable)(rolled.lessons), lowest, rolled.lessons.share, rolled.log_weights, ess_share(weighed)

    fine, lowest, shares, left, weighed = told(cloud)
    assert np.all(fine)
    np.testing.assert_allclose(lowest, 0, atol=1e-9)
    np.testing.assert_allclose(shares[-1], 1)
    np.testing.assert_allclose(left - np.mean(left, axis=1, keepdims=True), 0, atol=1e-9)
    assert weighed < 0.98


def test_a_lesson_is_a_step_of_the_flow(x64):
    """What was computed once, with the network put in, has what a step adds to the log weights of the flow as it is
    used."""
    problem, cloud = a_problem(1)
    velocity = filled(0, lambda: EquivariantVelocity(jax.random.key(0)), scale=0.3)
    chosen = jnp.array([5, 2, 40])
    rolled = jax.jit(lambda c: roll(velocity, KINDS, problem, c, 2, begun=0.4, chosen=chosen))(cloud)
    found = jax.vmap(lambda lesson: log_weights(KINDS, velocity, lesson))(rolled.lessons)
    np.testing.assert_allclose(np.cumsum(found, axis=0), rolled.log_weights[:, chosen], atol=1e-9)
    assert np.ptp(found[-1]) > 1e-3
