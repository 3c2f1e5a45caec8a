"""Stein variational gradient descent: particles climb the posterior together and push each other apart.

Follows Liu and Wang, "Stein variational gradient descent: a general purpose Bayesian inference algorithm" (2016), on a
posterior that gains a datum between updates.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.baselines.sgld import ChainsState
from pfbr.baselines.stochastic import positive, posterior_scores
from pfbr.inference.history import check_capacity, empty_history
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.density import squared_distances
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, Points, Real


class SVGD(Method):
    """x_i ← x_i + ε mean_j [k(x_j, x_i) s_j + ∇_{x_j} k(x_j, x_i)], in units of the particles' spread.

    k is Gaussian with h² = median² / (2 log(N + 1)), as in the paper. `step_size` ε, `steps` for each observation.
    """

    step_size: Real = eqx.field(default=0.3, converter=positive("step_size"))
    steps: int = eqx.field(static=True, default=20, converter=positive("steps"))
    batch: int | None = eqx.field(static=True, default=None)
    capacity: int = eqx.field(static=True, default=256, converter=check_capacity)

    def init(self, key: Key, model: Model, num_particles: int) -> ChainsState:
        edge.accept(self, model, num_particles)
        return ChainsState(edge.prior_points(key, model, num_particles), empty_history(model, self.capacity))

    def update(self, key: Key, model: Model, state: ChainsState, observation: Observation) -> tuple[ChainsState, Info]:
        history = state.history.append(model, edge.accept_observation(model, observation))
        scale = jnp.std(state.points, axis=0) + 1e-12  # one frame per update, so that the steps share one objective

        def step(points, step_key):
            scores = scale * posterior_scores(step_key, model, history, scale * points, self.batch)
            return points + self.step_size * stein_direction(points, scores), None

        points, _ = jax.lax.scan(step, state.points / scale, jax.random.split(key, self.steps))
        return ChainsState(scale * points, history), Info()

    def particles(self, state: ChainsState) -> Particles:
        return equally_weighted(state.points)

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "BootstrapSMC")


def stein_direction(points: Points, scores: Points) -> Points:
    """The steepest descent of the KL divergence in the unit ball of the kernel's space."""
    n = points.shape[0]
    distances = squared_distances(points, points)
    width = jnp.maximum(jnp.median(distances) / (2.0 * jnp.log(n + 1.0)), 1e-12)
    gram = jnp.exp(-0.5 * distances / width)
    repulsion = (points * jnp.sum(gram, axis=1, keepdims=True) - gram @ points) / width
    return (gram @ scores + repulsion) / n
