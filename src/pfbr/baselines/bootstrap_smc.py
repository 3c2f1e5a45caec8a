"""The bootstrap particle filter: move by the dynamics, weigh by the likelihood.

Follows Gordon, Salmond and Smith, "Novel approach to nonlinear/non-Gaussian Bayesian state estimation" (1993), with
systematic resampling after Carpenter, Clifford and Fearnhead (1999). Resampling opens an update instead of closing
it, so that the particles one looks at are weighted, which is never worse.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise
from pfbr.particles.resampling import check_scheme, check_threshold, resample, when_poor
from pfbr.typing import Key, Observation


class BootstrapSMC(Method):
    """x_m ~ p(x_m | x_{m-1}), w ∝ p(o_m | x_m).

    `threshold`: resample once the effective sample size is at most this share of the particles (1: always, 0: never).
    """

    resampling: str = eqx.field(static=True, default="systematic", converter=check_scheme)
    threshold: float = eqx.field(static=True, default=1.0, converter=check_threshold)

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        edge.accept(self, model, num_particles)
        return equally_weighted(edge.prior_points(key, model, num_particles))

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        observation = edge.accept_observation(model, observation)
        resample_key, move_key = jax.random.split(key)
        state = when_poor(state, self.threshold, lambda p: resample(resample_key, p, self.resampling))
        points = edge.predict(move_key, model, state.points)
        values = Likelihood(model, observation).values(points)
        log_weights = state.log_weights + values
        info = Info(
            ess=ess(log_weights),
            log_predictive=jax.nn.logsumexp(log_weights),
            possible=jnp.mean(jnp.isfinite(values)),
            undefined=jnp.mean(jnp.isnan(values)),
        )
        return Particles(points, normalise(log_weights)), info

    def particles(self, state: Particles) -> Particles:
        return state

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_dynamics(model, "OnePassSMC or IBIS")
