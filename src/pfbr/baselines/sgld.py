"""Stochastic gradient Langevin dynamics: every particle is a chain that follows noisy gradients with noise of its own.

Follows Welling and Teh, "Bayesian learning via stochastic gradient Langevin dynamics" (2011), on a posterior that gains
a datum between updates.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.baselines.stochastic import positive, posterior_scores
from pfbr.inference.history import History, check_capacity, empty_history
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted
from pfbr.typing import Key, Observation, Points, Real


class ChainsState(eqx.Module):
    """Where the chains are, how wide the posterior was, and all data so far."""

    points: Points
    history: History


class SGLD(Method):
    """x ← x + ½ ε v ∇ log p(x | O) + √(ε v) ξ, `steps` times for each observation.

    v is the variance of the chains in each dimension, so that `step_size` ε needs no retuning as the posterior narrows.
    The gradient comes from `batch` stored observations (None: all of them). A larger ε moves faster and widens the
    result by a share of about ε/4.
    """

    step_size: Real = eqx.field(default=0.1, converter=positive("step_size"))
    steps: int = eqx.field(static=True, default=20, converter=positive("steps"))
    batch: int | None = eqx.field(static=True, default=None)
    capacity: int = eqx.field(static=True, default=256, converter=check_capacity)

    def init(self, key: Key, model: Model, num_particles: int) -> ChainsState:
        edge.accept(self, model, num_particles)
        return ChainsState(edge.prior_points(key, model, num_particles), empty_history(model, self.capacity))

    def update(self, key: Key, model: Model, state: ChainsState, observation: Observation) -> tuple[ChainsState, Info]:
        history = state.history.append(model, edge.accept_observation(model, observation))

        def step(points, step_key):
            batch_key, noise_key = jax.random.split(step_key)
            scale = self.step_size * jnp.var(points, axis=0)
            drift = posterior_scores(batch_key, model, history, points, self.batch)
            noise = jax.random.normal(noise_key, points.shape)
            return points + 0.5 * scale * drift + jnp.sqrt(scale) * noise, None

        points, _ = jax.lax.scan(step, state.points, jax.random.split(key, self.steps))
        return ChainsState(points, history), Info()

    def particles(self, state: ChainsState) -> Particles:
        return equally_weighted(state.points)

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "BootstrapSMC")
