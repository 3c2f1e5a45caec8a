"""A particle filter whose proposal is a network trained on the filter's own evidence estimate.

Follows Le, Igl, Rainforth, Jin and Wood, "Auto-encoding sequential Monte Carlo" (2018); Maddison et al. (2017)
and Naesseth et al. (2018) have the same bound.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.baselines.proposals import Memory, Proposal, new_proposal
from pfbr.errors import TrainingError
from pfbr.inference.info import Info
from pfbr.inference.method import Method, record
from pfbr.models.base import Model, normal_log_density, offers
from pfbr.models.conditions import observation_shape, stays
from pfbr.models.simulate import simulate
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise
from pfbr.particles.resampling import check_scheme, check_threshold, resample, when_poor
from pfbr.typing import Key, Observation


class AESMCState(eqx.Module):
    """Weighted particles, and what the network remembers of the observations."""

    current: Particles
    memory: Memory


class AESMC(Method):
    """x ~ q_φ(x | x_prev, o), w ∝ p(x | x_prev) p(o | x) / q_φ(x | x_prev, o); make one with `fit_aesmc`."""

    proposal: Proposal
    resampling: str = eqx.field(static=True, default="systematic", converter=check_scheme)
    threshold: float = eqx.field(static=True, default=1.0, converter=check_threshold)

    def init(self, key: Key, model: Model, num_particles: int) -> AESMCState:
        edge.accept(self, model, num_particles)
        return AESMCState(equally_weighted(edge.prior_points(key, model, num_particles)), self.proposal.start())

    def update(self, key: Key, model: Model, state: AESMCState, observation: Observation) -> tuple[AESMCState, Info]:
        observation = edge.accept_observation(model, observation)
        resample_key, noise_key = jax.random.split(key)
        before = when_poor(state.current, self.threshold, lambda p: resample(resample_key, p, self.resampling))
        memory = self.proposal.listen(state.memory, observation)
        mean, std = jax.vmap(self.proposal.propose, (None, None, 0))(memory, observation, before.points)
        points = mean + std * jax.random.normal(noise_key, mean.shape)
        proposed = jax.vmap(model.log_transition)(points, before.points) - normal_log_density(points, mean, std)  # type: ignore[attr-defined]
        still = stays(model)
        if still is not None:  # no time has passed: there is nothing to propose
            points, proposed = jnp.where(still, before.points, points), jnp.where(still, 0.0, proposed)
        values = jax.vmap(model.log_likelihood, (0, None))(points, observation)
        log_weights = before.log_weights + proposed + values
        info = Info(ess=ess(log_weights), log_predictive=jax.nn.logsumexp(log_weights))
        return AESMCState(Particles(points, normalise(log_weights)), memory), info

    def particles(self, state: AESMCState) -> Particles:
        return state.current

    def unsupported(self, model: Model) -> str | None:
        reason = edge.needs_dynamics(model, "OnePassSMC")
        if reason is not None:
            return reason
        if not offers(model, "log_transition"):
            return "it weighs by `log_transition(x_next, x)`, which this model has not; use BootstrapSMC."
        head = self.proposal.head  # type: ignore[attr-defined]
        made_for = (head.scales.state_mean.shape[-1], head.scales.seen_mean.shape[-1])
        shape = observation_shape(model)
        if made_for[0] != int(model.dim) or (shape is not None and made_for[1] != int(np.prod(shape))):
            return f"its network was made for {made_for[0]} unknowns and {made_for[1]} observed values: train another."
        return None


class Fitted(NamedTuple):
    """The best method on validation streams, and how it got there: (step, seconds, log evidence per stage)."""

    method: AESMC
    progress: list[tuple[int, float, float]]


def fit_aesmc(
    key: Key,
    model: Model,
    *,
    kind: str = "mlp",
    minutes: float = 2.0,
    max_steps: int | None = None,
    num_particles: int = 32,
    length: int = 10,
    batch: int = 16,
    rate: float = 1e-3,
    width: int = 64,
    callback: Callable[[int, float, float], None] | None = None,
) -> Fitted:
    """Adam on the negative evidence bound of simulated streams, until time or steps are used up.

    Every 50 steps, and before the first, the bound is taken on 64 fixed validation streams, reported to
    `callback(step, seconds, bound)`, and the best network so far is kept.
    """
    net_key, validation_key, key = jax.random.split(key, 3)
    method = AESMC(new_proposal(net_key, model, kind, width=width))

    def bound(method, key, num_streams):
        def one(stream_key):
            simulate_key, run_key = jax.random.split(stream_key)
            observations = simulate(simulate_key, model, length).observations
            return jnp.mean(record(run_key, method, model, observations, num_particles).info.log_predictive)

        return jnp.mean(jax.vmap(one)(jax.random.split(key, num_streams)))

    validate = eqx.filter_jit(lambda method: bound(method, validation_key, 64))
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
    memory = optimiser.init(eqx.filter(method, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(method, memory, step_key):
        gradient = eqx.filter_grad(lambda m: -bound(m, step_key, batch))(method)
        gradient = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), gradient)
        updates, memory = optimiser.update(gradient, memory)
        return eqx.apply_updates(method, updates), memory

    # compile before the clock starts: `minutes` are minutes of training
    validate(method)
    step(method, memory, key)
    started, steps = time.perf_counter(), 0
    best, best_score, progress = method, -np.inf, []
    while True:
        score, seconds = float(validate(method)), time.perf_counter() - started
        progress.append((steps, seconds, score))
        if callback is not None:
            callback(*progress[-1])
        if score > best_score:
            best, best_score = method, score
        if not np.isfinite(best_score):
            raise TrainingError("the evidence of simulated streams is not finite: check the model's densities.")
        for _ in range(50):
            if seconds >= 60.0 * minutes or (max_steps is not None and steps >= max_steps):
                return Fitted(best, progress)
            key, step_key = jax.random.split(key)
            method, memory = step(method, memory, step_key)
            steps, seconds = steps + 1, time.perf_counter() - started
