"""Particle mirror descent: geometric averaging of the present density with the posterior, on kernel density estimates.

Follows Dai, He, Dai and Song, "Provable Bayesian inference via particle mirror descent" (2016).
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.baselines.stochastic import positive, posterior_values
from pfbr.inference.history import History, check_capacity, empty_history
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.density import kde_log_density, kde_sample, silverman
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise
from pfbr.typing import Key, Observation, Real


class MirrorState(eqx.Module):
    """The weighted particles whose kernel density is the present posterior, and all data so far."""

    current: Particles
    history: History


class MirrorDescent(Method):
    """Draw x ~ q, then q ← kernel density with weights ∝ exp(γ [log p(x, O) − log q(x)]), `steps` times a datum.

    Each step is q^{1−γ} p(x | O)^γ up to a constant. γ = `step_size` / √t in step t of an update, at most one, as the
    theory asks. `batch` stored observations stand for all (None: all of them). `smoothing` multiplies Silverman's
    bandwidth: each kernel density widens the posterior, so less than one does better.
    """

    step_size: Real = eqx.field(default=0.7, converter=positive("step_size"))
    smoothing: Real = eqx.field(default=0.5, converter=positive("smoothing"))
    steps: int = eqx.field(static=True, default=4, converter=positive("steps"))
    batch: int | None = eqx.field(static=True, default=None)
    capacity: int = eqx.field(static=True, default=256, converter=check_capacity)

    def init(self, key: Key, model: Model, num_particles: int) -> MirrorState:
        edge.accept(self, model, num_particles)
        start = equally_weighted(edge.prior_points(key, model, num_particles))
        return MirrorState(start, empty_history(model, self.capacity))

    def update(self, key: Key, model: Model, state: MirrorState, observation: Observation) -> tuple[MirrorState, Info]:
        history = state.history.append(model, edge.accept_observation(model, observation))
        n = state.current.num_particles

        def step(current, inputs):
            t, step_key = inputs
            draw_key, batch_key = jax.random.split(step_key)
            bandwidth = self.smoothing * silverman(current)
            points = kde_sample(draw_key, current, bandwidth, n)
            target = posterior_values(batch_key, model, history, points, self.batch)
            gamma = jnp.minimum(self.step_size / jnp.sqrt(t + 1.0), 1.0)
            log_weights = gamma * (target - kde_log_density(current, bandwidth, points))
            return Particles(points, normalise(log_weights)), None

        inputs = (jnp.arange(self.steps), jax.random.split(key, self.steps))
        current, _ = jax.lax.scan(step, state.current, inputs)
        return MirrorState(current, history), Info(ess=ess(current.log_weights))

    def particles(self, state: MirrorState) -> Particles:
        return state.current

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "BootstrapSMC")
