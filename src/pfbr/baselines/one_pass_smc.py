"""One pass over the data: reweight the particles, and draw new ones from a kernel density when few still count.

Follows Balakrishnan and Madigan, "A one-pass sequential Monte Carlo method for Bayesian analysis of massive
datasets" (2006), with the kernels shrunk towards the mean as in Liu and West, "Combined parameter and state
estimation in simulation-based filtering" (2001): without the shrinkage every renewal would widen the posterior.
"""

import equinox as eqx
import jax
from jax import numpy as jnp

from pfbr.baselines import edge
from pfbr.errors import InputError
from pfbr.flow.likelihood import Likelihood
from pfbr.inference.info import Info
from pfbr.inference.method import Method
from pfbr.models.base import Model
from pfbr.particles.particles import Particles, equally_weighted, ess, normalise, weighted_cov, weighted_mean
from pfbr.particles.resampling import check_scheme, check_threshold, resample, when_poor
from pfbr.typing import Key, Observation


def _bandwidth(value: float | None) -> float | None:
    if value is not None and not 0.0 < value <= 1.0:
        raise InputError(f"`bandwidth` is in units of the particles' spread, in (0, 1]; got {value}.")
    return value


class OnePassSMC(Method):
    """w ← w p(o | x); when the effective sample size falls, x' = m + √(1 − h²) (x − m) + h L ε.

    m and L Lᵀ are the weighted mean and covariance, which the renewal keeps. `bandwidth` is h; None takes
    Silverman's rule. A small h keeps the shape of a posterior with several modes, a large one spreads duplicates.
    """

    resampling: str = eqx.field(static=True, default="systematic", converter=check_scheme)
    threshold: float = eqx.field(static=True, default=0.5, converter=check_threshold)
    bandwidth: float | None = eqx.field(static=True, default=None, converter=_bandwidth)

    def init(self, key: Key, model: Model, num_particles: int) -> Particles:
        edge.accept(self, model, num_particles)
        return equally_weighted(edge.prior_points(key, model, num_particles))

    def update(self, key: Key, model: Model, state: Particles, observation: Observation) -> tuple[Particles, Info]:
        observation = edge.accept_observation(model, observation)
        state = when_poor(state, self.threshold, lambda p: self._renew(key, p))
        log_weights = state.log_weights + Likelihood(model, observation).values(state.points)
        info = Info(ess=ess(log_weights), log_predictive=jax.nn.logsumexp(log_weights))
        return Particles(state.points, normalise(log_weights)), info

    def particles(self, state: Particles) -> Particles:
        return state

    def unsupported(self, model: Model) -> str | None:
        return edge.needs_rest(model, "BootstrapSMC")

    def _renew(self, key: Key, particles: Particles) -> Particles:
        resample_key, noise_key = jax.random.split(key)
        n, d = particles.points.shape
        h = silverman_factor(d, n) if self.bandwidth is None else self.bandwidth
        mean, cov = weighted_mean(particles), weighted_cov(particles)
        # the smallest ridge that lets float32 factor a covariance whose particles have collapsed to a few
        ridge = 1e-6 * jnp.trace(cov) + 1e-30
        spread = jnp.linalg.cholesky(cov + ridge * jnp.eye(d))
        kept = resample(resample_key, particles, self.resampling)
        noise = jax.random.normal(noise_key, (n, d)) @ spread.T
        return Particles(mean + jnp.sqrt(1.0 - h**2) * (kept.points - mean) + h * noise, kept.log_weights)


def silverman_factor(dim: int, num: int) -> float:
    """Silverman's bandwidth for a unit normal, (4 / (d + 2))^{1/(d+4)} N^{-1/(d+4)}; below 1 for N of 2 and more."""
    return (4.0 / (dim + 2)) ** (1.0 / (dim + 4)) * num ** (-1.0 / (dim + 4))
